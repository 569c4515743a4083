// The functions of cublas_calls.h.
#include <memory>
#include <numeric>

#include "blas.hpp"

using namespace warpsim;

namespace {

constexpr int kVersion = 130000;

cublasStatus_t make_handle(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy_handle(cublasHandle_t handle) {
  delete handle;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t version_of(cublasHandle_t, int* version) {
  *version = kVersion;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t set(cublasHandle_t handle, T cublasContext::*field, T value) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->*field = value;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t get(cublasHandle_t handle, T cublasContext::*field, T* value) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *value = handle->*field;
  return CUBLAS_STATUS_SUCCESS;
}

template <class... Any>
cublasStatus_t ignored(Any...) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t status(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t copy_matrix(int m, int n, int size, const void* A, int lda, void* B, int ldb,
                           cudaMemcpyKind kind) {
  if (m < 0 || n < 0 || size <= 0 || lda < std::max(1, m) || ldb < std::max(1, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const size_t unit = size;
  return status(cudaMemcpy2D(B, ldb * unit, A, lda * unit, m * unit, n, kind));
}

cublasStatus_t copy_vector(int n, int size, const void* x, int incx, void* y, int incy,
                           cudaMemcpyKind kind) {
  if (incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (incx == 1 && incy == 1) return copy_matrix(n, 1, size, x, std::max(1, n), y, std::max(1, n), kind);
  return copy_matrix(1, n, size, x, incx, y, incy, kind);
}

// Vectors

template <class T>
cublasStatus_t axpy(const std::string& name, cublasHandle_t handle, int n, const T* alpha,
                    const T* x, int incx, T* y, int incy) {
  return in_stream(name, handle, [=, alpha = scalar(handle, name, alpha)] {
    const T factor = alpha();
    const Vector<const T> from(name + " reads x", x, n, incx, true);
    const Vector<T> to(name + " reads y", y, n, incy, true);
    for (int i = 0; i < n; ++i) to(i) += factor * from(i);
  });
}

template <class T>
cublasStatus_t copy(const std::string& name, cublasHandle_t handle, int n, const T* x, int incx,
                    T* y, int incy) {
  return in_stream(name, handle, [=] {
    const Vector<const T> from(name + " reads x", x, n, incx, true);
    const Vector<T> to(name + " writes y", y, n, incy, false);
    for (int i = 0; i < n; ++i) to(i) = from(i);
  });
}

template <class T>
cublasStatus_t swap(const std::string& name, cublasHandle_t handle, int n, T* x, int incx, T* y,
                    int incy) {
  return in_stream(name, handle, [=] {
    const Vector<T> one(name + " reads x", x, n, incx, true);
    const Vector<T> other(name + " reads y", y, n, incy, true);
    for (int i = 0; i < n; ++i) std::swap(one(i), other(i));
  });
}

template <class T>
cublasStatus_t scal(const std::string& name, cublasHandle_t handle, int n, const T* alpha, T* x,
                    int incx) {
  return in_stream(name, handle, [=, alpha = scalar(handle, name, alpha)] {
    const T factor = alpha();
    const Vector<T> all(name + " reads x", x, n, incx, true);
    for (int i = 0; i < n; ++i) all(i) *= factor;
  });
}

template <class R, class X, class Y>
cublasStatus_t dot(const std::string& name, cublasHandle_t handle, int n, const X* x, int incx,
                   const Y* y, int incy, R* result) {
  return in_stream(name, handle, [=] {
    const Vector<const X> left(name + " reads x", x, n, incx, true);
    const Vector<const Y> right(name + " reads y", y, n, incy, true);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += double(load(left(i))) * double(load(right(i)));
    give(handle, name, result, store<R>(sum));
  });
}

template <class R, class X>
cublasStatus_t nrm2(const std::string& name, cublasHandle_t handle, int n, const X* x, int incx,
                    R* result) {
  return in_stream(name, handle, [=] {
    const Vector<const X> all(name + " reads x", x, n, incx, true);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum = std::hypot(sum, double(load(all(i))));
    give(handle, name, result, store<R>(sum));
  });
}

template <class T>
cublasStatus_t asum(const std::string& name, cublasHandle_t handle, int n, const T* x, int incx,
                    T* result) {
  return in_stream(name, handle, [=] {
    const Vector<const T> all(name + " reads x", x, n, incx, true);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::abs(all(i));
    give(handle, name, result, T(sum));
  });
}

// The first element of the largest or the smallest absolute value, from 1; 0 of none.
template <class T>
cublasStatus_t furthest(const std::string& name, cublasHandle_t handle, int n, const T* x, int incx,
                        int* result, bool largest) {
  return in_stream(name, handle, [=] {
    const Vector<const T> all(name + " reads x", x, n, incx, true);
    int best = 0;
    for (int i = 1; i < n; ++i) {
      const T known = std::abs(all(best)), value = std::abs(all(i));
      if (largest ? value > known : value < known) best = i;
    }
    give(handle, name, result, n > 0 ? best + 1 : 0);
  });
}

// Matrices

template <class T>
cublasStatus_t gemv(const std::string& name, cublasHandle_t handle, cublasOperation_t op, int m,
                    int n, const T* alpha, const T* A, int lda, const T* x, int incx, const T* beta,
                    T* y, int incy) {
  if (m < 0 || n < 0 || lda < std::max(1, m) || !incx || !incy) return CUBLAS_STATUS_INVALID_VALUE;
  const int rows = op == CUBLAS_OP_N ? m : n, columns = op == CUBLAS_OP_N ? n : m;
  return in_stream(name, handle, [=, alpha = scalar(handle, name, alpha),
                                  beta = scalar(handle, name, beta)] {
    const T factor = alpha(), old = beta();
    const auto all = packed(name + " reads A", A, op, rows, columns, lda);
    const Vector<const T> from(name + " reads x", x, columns, incx, true);
    if (old != T(0)) Vector<T>(name + " reads y", y, rows, incy, true);
    const Vector<T> to(name + " writes y", y, rows, incy, false);
    std::vector<T> sums(rows);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) sums[i] += all[i + j * rows] * from(j);
    }
    for (int i = 0; i < rows; ++i) {
      to(i) = factor * sums[i] + (old != T(0) ? old * to(i) : T(0));
    }
  });
}

template <class T>
cublasStatus_t ger(const std::string& name, cublasHandle_t handle, int m, int n, const T* alpha,
                   const T* x, int incx, const T* y, int incy, T* A, int lda) {
  if (m < 0 || n < 0 || lda < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
  return in_stream(name, handle, [=, alpha = scalar(handle, name, alpha)] {
    const T factor = alpha();
    const Vector<const T> left(name + " reads x", x, m, incx, true);
    const Vector<const T> right(name + " reads y", y, n, incy, true);
    const Matrix<T> all(name + " reads A", A, m, n, lda, true);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) all(i, j) += factor * left(i) * right(j);
    }
  });
}

template <class T, class S = typename Sum<T>::type>
std::function<S()> summed(const std::function<T()>& value) {
  return [value] { return S(load(value())); };
}

template <class T>
cublasStatus_t gemm(const std::string& name, cublasHandle_t handle, const Shape& shape,
                    const T* alpha, const T* A, const T* B, const T* beta, T* C) {
  if (!shape.valid()) return CUBLAS_STATUS_INVALID_VALUE;
  return in_stream(name, handle, [=, alpha = summed<T>(scalar(handle, name, alpha)),
                                  beta = summed<T>(scalar(handle, name, beta))] {
    const auto factor = alpha(), old = beta();
    for (int64_t i = 0; i < shape.count; ++i) {
      multiply(name, shape, factor, A + i * shape.stride_a, B + i * shape.stride_b, old,
               C + i * shape.stride_c);
    }
  });
}

template <class T>
cublasStatus_t gemm_batched(const std::string& name, cublasHandle_t handle, const Shape& shape,
                            const T* alpha, const T* const* A, const T* const* B, const T* beta,
                            T* const* C) {
  if (!shape.valid()) return CUBLAS_STATUS_INVALID_VALUE;
  return in_stream(name, handle, [=, alpha = summed<T>(scalar(handle, name, alpha)),
                                  beta = summed<T>(scalar(handle, name, beta))] {
    const auto factor = alpha(), old = beta();
    const Vector<const T* const> left(name + " reads its pointers", A, shape.count, 1, true);
    const Vector<const T* const> right(name + " reads its pointers", B, shape.count, 1, true);
    const Vector<T* const> result(name + " reads its pointers", C, shape.count, 1, true);
    for (int64_t i = 0; i < shape.count; ++i) {
      multiply(name, shape, factor, left(i), right(i), old, result(i));
    }
  });
}

// An operand whose type is named by a value.
struct Typed {
  const void* pointer;
  cudaDataType type;
};

template <class A, class C, class S>
cublasStatus_t gemm_as(cublasHandle_t handle, const Shape& s, const void* alpha, const void* a,
                       const void* b, const void* beta, const void* c) {
  const std::string name = s.count > 1 ? "cublasGemmStridedBatchedEx" : "cublasGemmEx";
  return in_stream(name, handle, [=, alpha = scalar(handle, name, static_cast<const S*>(alpha)),
                                  beta = scalar(handle, name, static_cast<const S*>(beta))] {
    const auto factor = alpha(), old = beta();
    auto to = static_cast<C*>(const_cast<void*>(c));
    for (int64_t i = 0; i < s.count; ++i) {
      multiply(name, s, load(factor), static_cast<const A*>(a) + i * s.stride_a,
               static_cast<const A*>(b) + i * s.stride_b, load(old), to + i * s.stride_c);
    }
  });
}

cublasStatus_t gemm_ex(cublasHandle_t handle, const Shape& s, const void* alpha, Typed a, Typed b,
                       const void* beta, Typed c, int compute, cublasGemmAlgo_t) {
  if (!s.valid()) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.type != b.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool half = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
  const bool whole = compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC;
  const bool wide = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  const auto is = [&](cudaDataType from, cudaDataType to, bool fits) {
    return a.type == from && c.type == to && fits;
  };
  const bool single = !half && !whole && !wide;
#define WARPSIM_AS(A, C, S) gemm_as<A, C, S>(handle, s, alpha, a.pointer, b.pointer, beta, c.pointer)
  if (is(CUDA_R_16F, CUDA_R_16F, half)) return WARPSIM_AS(__half, __half, __half);
  if (is(CUDA_R_16F, CUDA_R_16F, single)) return WARPSIM_AS(__half, __half, float);
  if (is(CUDA_R_16F, CUDA_R_32F, single)) return WARPSIM_AS(__half, float, float);
  if (is(CUDA_R_16BF, CUDA_R_16BF, single)) return WARPSIM_AS(__nv_bfloat16, __nv_bfloat16, float);
  if (is(CUDA_R_16BF, CUDA_R_32F, single)) return WARPSIM_AS(__nv_bfloat16, float, float);
  if (is(CUDA_R_8I, CUDA_R_32F, single)) return WARPSIM_AS(int8_t, float, float);
  if (is(CUDA_R_8I, CUDA_R_32I, whole)) return WARPSIM_AS(int8_t, int32_t, int32_t);
  if (is(CUDA_R_32F, CUDA_R_32F, single)) return WARPSIM_AS(float, float, float);
  if (is(CUDA_R_64F, CUDA_R_64F, wide)) return WARPSIM_AS(double, double, double);
#undef WARPSIM_AS
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

// Calls `with` with a null pointer of the type that a value names.
template <class With>
cublasStatus_t of_type(cudaDataType type, With with) {
  switch (type) {
    case CUDA_R_16F: return with(static_cast<__half*>(nullptr));
    case CUDA_R_16BF: return with(static_cast<__nv_bfloat16*>(nullptr));
    case CUDA_R_32F: return with(static_cast<float*>(nullptr));
    case CUDA_R_64F: return with(static_cast<double*>(nullptr));
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t dot_ex(cublasHandle_t handle, int n, Typed x, int incx, Typed y, int incy,
                      Typed result, cudaDataType) {
  if (x.type != y.type || x.type != result.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  return of_type(x.type, [&](auto* typed) {
    using T = std::remove_pointer_t<decltype(typed)>;
    return dot<T>("cublasDotEx", handle, n, static_cast<const T*>(x.pointer), incx,
                  static_cast<const T*>(y.pointer), incy,
                  static_cast<T*>(const_cast<void*>(result.pointer)));
  });
}

cublasStatus_t nrm2_ex(cublasHandle_t handle, int n, Typed x, int incx, Typed result, cudaDataType) {
  if (x.type != result.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  return of_type(x.type, [&](auto* typed) {
    using T = std::remove_pointer_t<decltype(typed)>;
    return nrm2<T>("cublasNrm2Ex", handle, n, static_cast<const T*>(x.pointer), incx,
                   static_cast<T*>(const_cast<void*>(result.pointer)));
  });
}

// C = alpha op(A) + beta op(B); an operand whose factor is 0 is not read.
template <class T>
cublasStatus_t geam(const std::string& name, cublasHandle_t handle, cublasOperation_t ta,
                    cublasOperation_t tb, int m, int n, const T* alpha, const T* A, int lda,
                    const T* beta, const T* B, int ldb, T* C, int ldc) {
  if (m < 0 || n < 0 || ldc < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
  return in_stream(name, handle, [=, alpha = scalar(handle, name, alpha),
                                  beta = scalar(handle, name, beta)] {
    std::vector<T> sums(int64_t(m) * n);
    const auto add = [&](T factor, const char* which, const T* from, cublasOperation_t op, int ld) {
      if (factor == T(0)) return;
      const auto all = packed(name + which, from, op, m, n, ld);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += factor * all[i];
    };
    add(alpha(), " reads A", A, ta, lda);
    add(beta(), " reads B", B, tb, ldb);
    const Matrix<T> result(name + " writes C", C, m, n, ldc, false);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) result(i, j) = sums[i + j * m];
    }
  });
}

// Solves op(A) X = alpha B, or X op(A) = alpha B, in B, for a triangle of A.
template <class T>
cublasStatus_t trsm(const std::string& name, cublasHandle_t handle, cublasSideMode_t side,
                    cublasFillMode_t part, cublasOperation_t op, cublasDiagType_t diagonal, int m,
                    int n, const T* alpha, const T* A, int lda, T* B, int ldb) {
  const bool left = side == CUBLAS_SIDE_LEFT;
  const int order = left ? m : n, others = left ? n : m;
  if (m < 0 || n < 0 || lda < std::max(1, order) || ldb < std::max(1, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return in_stream(name, handle, [=, alpha = scalar(handle, name, alpha)] {
    const T factor = alpha();
    const Matrix<const T> a(name + " reads A", A, order, order, lda, false);
    const Matrix<T> b(name + " reads B", B, m, n, ldb, true);
    // X A = B is A^T X^T = B^T: one case, in which elements of X are addressed otherwise.
    const bool turned = (op != CUBLAS_OP_N) == left;
    const bool forward = (part == CUBLAS_FILL_MODE_LOWER) != turned;
    const auto x = [&](int row, int column) -> T& { return left ? b(row, column) : b(column, row); };
    for (int column = 0; column < others; ++column) {
      for (int step = 0; step < order; ++step) {
        const int row = forward ? step : order - 1 - step;
        T sum = factor * x(row, column);
        for (int known = 0; known < step; ++known) {
          const int k = forward ? known : order - 1 - known;
          sum -= (turned ? a(k, row) : a(row, k)) * x(k, column);
        }
        x(row, column) = diagonal == CUBLAS_DIAG_UNIT ? sum : sum / a(row, row);
      }
    }
  });
}

// The factors L and U of each matrix, in place; rows are exchanged where there are pivots.
template <class T>
cublasStatus_t getrf(const std::string& name, cublasHandle_t handle, int n, T* const* A, int lda,
                     int* pivots, int* info, int count) {
  if (n < 0 || count < 0 || lda < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return in_stream(name, handle, [=] {
    const Vector<T* const> all(name + " reads its pointers", A, count, 1, true);
    const Vector<int> infos(name + " writes info", info, count, 1, false);
    for (int each = 0; each < count; ++each) {
      const Matrix<T> a(name + " reads A", all(each), n, n, lda, true);
      std::unique_ptr<Vector<int>> rows;
      if (pivots) {
        rows = std::make_unique<Vector<int>>(name + " writes its pivots", pivots + int64_t(each) * n,
                                             n, 1, false);
      }
      infos(each) = 0;
      for (int k = 0; k < n; ++k) {
        int best = k;
        for (int i = k + 1; rows && i < n; ++i) {
          if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
        }
        for (int j = 0; best != k && j < n; ++j) std::swap(a(k, j), a(best, j));
        if (rows) (*rows)(k) = best + 1;
        if (a(k, k) == T(0)) {
          if (!infos(each)) infos(each) = k + 1;
          continue;
        }
        for (int i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
        for (int j = k + 1; j < n; ++j) {
          for (int i = k + 1; i < n; ++i) a(i, j) -= a(i, k) * a(k, j);
        }
      }
    }
  });
}

// The inverse of each matrix, from its factors.
template <class T>
cublasStatus_t getri(const std::string& name, cublasHandle_t handle, int n, const T* const* A,
                     int lda, const int* pivots, T* const* C, int ldc, int* info, int count) {
  if (n < 0 || count < 0 || lda < std::max(1, n) || ldc < std::max(1, n)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return in_stream(name, handle, [=] {
    const Vector<const T* const> all(name + " reads its pointers", A, count, 1, true);
    const Vector<T* const> results(name + " reads its pointers", C, count, 1, true);
    const Vector<int> infos(name + " writes info", info, count, 1, false);
    for (int each = 0; each < count; ++each) {
      const Matrix<const T> a(name + " reads A", all(each), n, n, lda, true);
      const Matrix<T> c(name + " writes C", results(each), n, n, ldc, false);
      std::vector<int> order(n);
      std::iota(order.begin(), order.end(), 0);
      for (int k = 0; pivots && k < n; ++k) {
        const Vector<const int> rows(name + " reads its pivots", pivots + int64_t(each) * n, n, 1, true);
        std::swap(order[k], order[rows(k) - 1]);
      }
      infos(each) = 0;
      for (int k = 0; k < n && !infos(each); ++k) infos(each) = a(k, k) == T(0) ? k + 1 : 0;
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < n; ++i) {
          T sum = order[i] == j;
          for (int k = 0; k < i; ++k) sum -= a(i, k) * c(k, j);
          c(i, j) = sum;
        }
        for (int i = n - 1; i >= 0; --i) {
          T sum = c(i, j);
          for (int k = i + 1; k < n; ++k) sum -= a(i, k) * c(k, j);
          c(i, j) = sum / a(i, i);
        }
      }
    }
  });
}

struct Named {
  cublasStatus_t status;
  const char *name, *text;
};

constexpr Named kStatuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
};

const Named& named(cublasStatus_t status) {
  static const Named unknown{status, "unknown status", "unknown status"};
  for (const Named& each : kStatuses) {
    if (each.status == status) return each;
  }
  return unknown;
}

}  // namespace

extern "C" {
#define WARPSIM_CALL(name, parameters, body) \
  cublasStatus_t name##_v2 parameters { return body; }
#define WARPSIM_PLAIN(name, parameters, body) \
  cublasStatus_t name parameters { return body; }
#include "cublas_calls.h"

const char* cublasGetStatusName(cublasStatus_t status) { return named(status).name; }
const char* cublasGetStatusString(cublasStatus_t status) { return named(status).text; }
}
