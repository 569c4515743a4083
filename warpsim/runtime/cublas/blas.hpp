// The arithmetic on operands in device memory.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../cudart/operands.hpp"
#include "cublas_v2.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t scalars = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace warpsim {

// What sums are kept in: products of f16 and bf16 are added in f32, as on tensor cores.
template <class T> struct Sum { using type = float; };
template <> struct Sum<double> { using type = double; };
template <> struct Sum<int8_t> { using type = int32_t; };
template <> struct Sum<int32_t> { using type = int32_t; };

template <class T> auto load(T value) { return static_cast<typename Sum<T>::type>(value); }
inline float load(__half value) { return __half2float(value); }
inline float load(__nv_bfloat16 value) { return __bfloat162float(value); }
template <class T, class S> T store(S value) { return static_cast<T>(value); }

// A scalar of the host's, read now; or one of the device's, read when the work is done.
template <class T>
std::function<T()> scalar(const cublasContext* handle, const std::string& name, const T* pointer) {
  if (handle && handle->scalars == CUBLAS_POINTER_MODE_DEVICE) {
    return [=] { return Matrix<T>(name + " reads a scalar", pointer, 1, 1, 1, true)(0, 0); };
  }
  const T value = *pointer;
  return [value] { return value; };
}

template <class T>
void give(const cublasContext* handle, const std::string& name, T* pointer, T value) {
  if (handle->scalars == CUBLAS_POINTER_MODE_HOST) {
    *pointer = value;
  } else {
    Matrix<T>(name + " writes its result", pointer, 1, 1, 1, false)(0, 0) = value;
  }
}

// In the order of the handle's stream.
inline cublasStatus_t in_stream(const std::string& name, cublasHandle_t handle,
                                const std::function<void()>& work) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  return compute(name, handle->stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                             : CUBLAS_STATUS_EXECUTION_FAILED;
}

// op(A), rows x columns, packed: one column after the other.
template <class T>
auto packed(const std::string& what, const T* pointer, cublasOperation_t op, int64_t rows,
            int64_t columns, int64_t ld) {
  const bool turned = op != CUBLAS_OP_N;
  const Matrix<T> from(what, pointer, turned ? columns : rows, turned ? rows : columns, ld, true);
  std::vector<typename Sum<T>::type> all(rows * columns);
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      all[i + j * rows] = load(turned ? from(j, i) : from(i, j));
    }
  }
  return all;
}

struct Shape {
  cublasOperation_t ta, tb;
  int64_t m, n, k, lda, ldb, ldc;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, count = 1;

  bool valid() const {
    return m >= 0 && n >= 0 && k >= 0 && count >= 0 && ldc >= std::max<int64_t>(1, m) &&
           lda >= std::max<int64_t>(1, ta == CUBLAS_OP_N ? m : k) &&
           ldb >= std::max<int64_t>(1, tb == CUBLAS_OP_N ? k : n);
  }
};

// C = alpha op(A) op(B) + beta C, sums in the type of alpha.
template <class A, class C, class S>
void multiply(const std::string& name, const Shape& s, S alpha, const A* a, const A* b, S beta,
              C* c) {
  std::vector<S> sums(s.m);
  const bool reads = beta != S(0), multiplies = alpha != S(0) && s.k > 0;
  using P = typename Sum<A>::type;
  const auto left = multiplies ? packed(name + " reads A", a, s.ta, s.m, s.k, s.lda) : std::vector<P>();
  const auto right = multiplies ? packed(name + " reads B", b, s.tb, s.k, s.n, s.ldb) : std::vector<P>();
  if (reads) Matrix<C>(name + " reads C", c, s.m, s.n, s.ldc, true);
  const Matrix<C> result(name + " writes C", c, s.m, s.n, s.ldc, false);
  for (int64_t j = 0; j < s.n; ++j) {
    std::fill(sums.begin(), sums.end(), S(0));
    for (int64_t p = 0; multiplies && p < s.k; ++p) {
      const S factor = right[p + j * s.k];
      const P* column = left.data() + p * s.m;
      for (int64_t i = 0; i < s.m; ++i) sums[i] += column[i] * factor;
    }
    for (int64_t i = 0; i < s.m; ++i) {
      const S before = reads ? beta * static_cast<S>(load(result(i, j))) : S(0);
      result(i, j) = store<C>(alpha * sums[i] + before);
    }
  }
}

}  // namespace warpsim
