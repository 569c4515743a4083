// cuBLASLt's products, of matrices whose columns are contiguous, with biases and activations.
#include "cublasLt.h"

#include <cstring>

#include "../cublas/blas.hpp"

using namespace warpsim;

struct cublasLtContext {};

namespace {

constexpr size_t kVersion = 130000;

struct Layout {
  int32_t type, order;
  uint64_t rows, columns;
  int64_t ld;
  int32_t count, unused;
  int64_t stride;
};
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));

struct Product {
  int32_t compute, scale, pointers, ta, tb, epilogue;
  const void* bias;
  int64_t bias_stride;
};
static_assert(sizeof(Product) <= sizeof(cublasLtMatmulDescOpaque_t));

template <class T, class Opaque>
T& inside(Opaque* opaque) {
  return *reinterpret_cast<T*>(opaque->data);
}

template <class T>
cublasStatus_t put(T& field, const void* value, size_t size) {
  if (!value || size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

float activated(float value, int epilogue) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return std::max(value, 0.0f);
  if (epilogue & CUBLASLT_EPILOGUE_GELU) {
    const float inner = 0.7978845608f * (value + 0.044715f * value * value * value);
    return 0.5f * value * (1.0f + std::tanh(inner));
  }
  return value;
}
template <class S> S activated(S value, int epilogue) {
  return epilogue & CUBLASLT_EPILOGUE_RELU ? std::max(value, S(0)) : value;
}

struct Operands {
  const void *alpha, *a, *b, *beta, *c;
  void* d;
  Layout la, lb, lc, ld;
  Product product;
  cudaStream_t stream;
};

// D = activation(alpha op(A) op(B) + beta C + bias), sums in S.
template <class A, class C, class S>
void multiply(const Operands& o, S alpha, S beta, int64_t at) {
  const std::string name = "cublasLtMatmul";
  const auto ta = cublasOperation_t(o.product.ta), tb = cublasOperation_t(o.product.tb);
  const int64_t m = o.ld.rows, n = o.ld.columns, k = ta == CUBLAS_OP_N ? o.la.columns : o.la.rows;
  const auto left = packed(name + " reads A", static_cast<const A*>(o.a) + at * o.la.stride, ta, m, k, o.la.ld);
  const auto right = packed(name + " reads B", static_cast<const A*>(o.b) + at * o.lb.stride, tb, k, n, o.lb.ld);
  std::vector<S> sums(m * n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) {
      const S factor = right[p + j * k];
      for (int64_t i = 0; i < m; ++i) sums[i + j * m] += left[i + p * m] * factor;
    }
  }
  for (S& sum : sums) sum *= alpha;
  if (beta != S(0)) {
    const auto before = packed(name + " reads C", static_cast<const C*>(o.c) + at * o.lc.stride, CUBLAS_OP_N, m, n, o.lc.ld);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += beta * static_cast<S>(before[i]);
  }
  if (o.product.epilogue & CUBLASLT_EPILOGUE_BIAS) {
    const C* bias = static_cast<const C*>(o.product.bias) + at * o.product.bias_stride;
    const Vector<const C> rows(name + " reads its bias", bias, m, 1, true);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<S>(load(rows(i % m)));
  }
  const Matrix<C> result(name + " writes D", static_cast<C*>(o.d) + at * o.ld.stride, m, n, o.ld.ld, false);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      result(i, j) = store<C>(activated(sums[i + j * m], o.product.epilogue));
    }
  }
}

template <class A, class C, class S, class Scalar = S>
cublasStatus_t matmul(const Operands& o) {
  cublasContext scalars;
  scalars.scalars = cublasPointerMode_t(o.product.pointers);
  const auto alpha = scalar(&scalars, "cublasLtMatmul", static_cast<const Scalar*>(o.alpha));
  const auto beta = scalar(&scalars, "cublasLtMatmul", static_cast<const Scalar*>(o.beta));
  const auto work = [=] {
    const S factor = load(alpha()), old = load(beta());
    for (int64_t at = 0; at < o.ld.count; ++at) multiply<A, C, S>(o, factor, old, at);
  };
  return compute("cublasLtMatmul", o.stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                   : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool fits(const Operands& o) {
  const bool a_turned = o.product.ta != CUBLAS_OP_N, b_turned = o.product.tb != CUBLAS_OP_N;
  const uint64_t m = a_turned ? o.la.columns : o.la.rows, k = a_turned ? o.la.rows : o.la.columns;
  const uint64_t own = b_turned ? o.lb.columns : o.lb.rows, n = b_turned ? o.lb.rows : o.lb.columns;
  return m == o.ld.rows && n == o.ld.columns && k == own && o.lc.rows == m && o.lc.columns == n;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return kVersion; }

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld) {
  inside<Layout>(layout) = {type, CUBLASLT_ORDER_COL, rows, columns, ld, 1, 0, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  return cublasLtMatrixLayoutInit_internal(*layout, sizeof **layout, type, rows, columns, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t size) {
  Layout& own = inside<Layout>(layout);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return put(own.type, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return put(own.order, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return put(own.rows, value, size);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return put(own.columns, value, size);
    case CUBLASLT_MATRIX_LAYOUT_LD: return put(own.ld, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return put(own.count, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return put(own.stride, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  inside<Product>(desc) = {compute, scale, CUBLASLT_POINTER_MODE_HOST, CUBLAS_OP_N, CUBLAS_OP_N,
                           CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t{};
  return cublasLtMatmulDescInit_internal(*desc, sizeof **desc, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return destroy(desc); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  Product& own = inside<Product>(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return put(own.compute, value, size);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return put(own.scale, value, size);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return put(own.pointers, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSA: return put(own.ta, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return put(own.tb, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return put(own.epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return put(own.bias, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return put(own.bias_stride, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t) {
  *preference = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int requested,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  results[0] = {{}, 0, CUBLAS_STATUS_SUCCESS, 1.0f, {}};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t a, const void* B,
                              cublasLtMatrixLayout_t b, const void* beta, const void* C,
                              cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Operands o{alpha, A, B, beta, C, D, inside<Layout>(a), inside<Layout>(b), inside<Layout>(c),
                   inside<Layout>(d), inside<Product>(desc), stream};
  for (const Layout& each : {o.la, o.lb, o.lc, o.ld}) {
    if (each.order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  constexpr int kKnown = CUBLASLT_EPILOGUE_GELU_BIAS | CUBLASLT_EPILOGUE_RELU_BIAS | CUBLASLT_EPILOGUE_DEFAULT;
  if (o.la.type != o.lb.type || o.lc.type != o.ld.type || (o.product.epilogue & ~kKnown)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!fits(o)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto is = [&](cudaDataType from, cudaDataType to, cudaDataType scale) {
    return o.la.type == from && o.ld.type == to && o.product.scale == scale;
  };
  if (is(CUDA_R_16F, CUDA_R_16F, CUDA_R_16F)) return matmul<__half, __half, float, __half>(o);
  if (is(CUDA_R_16F, CUDA_R_16F, CUDA_R_32F)) return matmul<__half, __half, float>(o);
  if (is(CUDA_R_16F, CUDA_R_32F, CUDA_R_32F)) return matmul<__half, float, float>(o);
  if (is(CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F)) return matmul<__nv_bfloat16, __nv_bfloat16, float>(o);
  if (is(CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F)) return matmul<__nv_bfloat16, float, float>(o);
  if (is(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F)) return matmul<float, float, float>(o);
  if (is(CUDA_R_8I, CUDA_R_32I, CUDA_R_32I)) return matmul<int8_t, int32_t, int32_t>(o);
  if (is(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F)) return matmul<double, double, double>(o);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // extern "C"
