// Calls of cuBLAS on random operands, each against double precision on the host: prints those whose
// results differ, and how many there were.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using Values = std::vector<double>;
int calls = 0;

Values random_values(int n) {
  Values all(n);
  for (double& each : all) each = rand() / double(RAND_MAX) - 0.5;
  return all;
}

template <class T>
T* device(const Values& values) {
  std::vector<T> all(values.begin(), values.end());
  T* made;
  cudaMalloc(&made, all.size() * sizeof(T));
  cudaMemcpy(made, all.data(), all.size() * sizeof(T), cudaMemcpyHostToDevice);
  return made;
}

template <class T>
void expect(const char* name, const T* result, const Values& wanted, double tolerance) {
  std::vector<T> all(wanted.size());
  cudaMemcpy(all.data(), result, all.size() * sizeof(T), cudaMemcpyDeviceToHost);
  ++calls;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!(std::fabs(double(all[i]) - wanted[i]) <= tolerance)) {
      printf("%s: element %zu is %g, not %g\n", name, i, double(all[i]), wanted[i]);
      return;
    }
  }
}

double at(const Values& a, int ld, bool turned, int i, int j) {
  return turned ? a[j + i * ld] : a[i + j * ld];
}

int main() {
  cublasHandle_t handle;
  cublasCreate(&handle);
  const int m = 13, n = 7, k = 19, ld = 23;
  const Values a = random_values(ld * ld), b = random_values(ld * ld), c = random_values(ld * ld);
  const float alpha = 1.5f, beta = -0.5f, none = 0, one = 1;
  for (cublasOperation_t ta : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (cublasOperation_t tb : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      Values wanted = c, fresh(ld * n, NAN);
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < m; ++i) {
          double sum = 0;
          for (int p = 0; p < k; ++p) sum += at(a, ld, ta, i, p) * at(b, ld, tb, p, j);
          wanted[i + j * ld] = alpha * sum + beta * c[i + j * ld];
          fresh[i + j * ld] = alpha * sum;
        }
      }
      float *A = device<float>(a), *B = device<float>(b), *C = device<float>(c);
      cublasSgemm(handle, ta, tb, m, n, k, &alpha, A, ld, B, ld, &beta, C, ld);
      expect("cublasSgemm", C, wanted, 1e-5);
      __half *P = device<__half>(a), *Q = device<__half>(b), *R = device<__half>(Values(ld * n, NAN));
      cublasGemmEx(handle, ta, tb, m, n, k, &alpha, P, CUDA_R_16F, ld, Q, CUDA_R_16F, ld, &none, R,
                   CUDA_R_16F, ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
      for (int j = 0; j < n; ++j) {
        const Values column(fresh.begin() + j * ld, fresh.begin() + j * ld + m);
        expect("cublasGemmEx", R + j * ld, column, 1e-2);
      }
    }
  }
  for (int side = 0; side < 2; ++side) {
    for (int part = 0; part < 2; ++part) {
      for (int turned = 0; turned < 2; ++turned) {
        Values triangle = a, solution = b, right = c;
        const int order = side == CUBLAS_SIDE_LEFT ? m : n;
        for (int i = 0; i < order; ++i) triangle[i + i * ld] += 4;
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < m; ++i) {
            double sum = 0;
            for (int p = 0; p < order; ++p) {
              const int row = side == CUBLAS_SIDE_LEFT ? i : p, column = side == CUBLAS_SIDE_LEFT ? p : j;
              const int from = turned ? column : row, to = turned ? row : column;
              const bool kept = part == CUBLAS_FILL_MODE_LOWER ? from >= to : from <= to;
              const double x = side == CUBLAS_SIDE_LEFT ? solution[p + j * ld] : solution[i + p * ld];
              sum += kept ? triangle[from + to * ld] * x : 0;
            }
            right[i + j * ld] = sum;
          }
        }
        Values wanted = right;
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < m; ++i) wanted[i + j * ld] = solution[i + j * ld];
        }
        float *A = device<float>(triangle), *B = device<float>(right);
        cublasStrsm(handle, cublasSideMode_t(side), cublasFillMode_t(part), cublasOperation_t(turned),
                    CUBLAS_DIAG_NON_UNIT, m, n, &one, A, ld, B, ld);
        expect("cublasStrsm", B, wanted, 1e-4);
      }
    }
  }
  {  // A, factored and inverted, is the identity when A multiplies it
    double *A = device<double>(a), *F = device<double>(a), *I = device<double>(Values(k * k, NAN));
    double *inverse = device<double>(Values(k * k, NAN)), plus = 1, zero = 0;
    double** pointers;
    int *pivots, *info;
    cudaMallocManaged(&pointers, 2 * sizeof(double*));
    cudaMalloc(&pivots, k * sizeof(int)), cudaMalloc(&info, sizeof(int));
    pointers[0] = F, pointers[1] = inverse;
    cublasDgetrfBatched(handle, k, pointers, ld, pivots, info, 1);
    cublasDgetriBatched(handle, k, pointers, ld, pivots, pointers + 1, k, info, 1);
    cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, k, k, k, &plus, A, ld, inverse, k, &zero, I, k);
    Values identity(k * k);
    for (int i = 0; i < k; ++i) identity[i + i * k] = 1;
    expect("cublasDgetriBatched", I, identity, 1e-9);
  }
  {
    float *x = device<float>(a), *y = device<float>(b), result;
    double dot = 0, most = 0, sum = 0, squares = 0;
    int best = 0, index;
    Values wanted = b;
    for (int i = 0; i < n; ++i) {
      dot += a[2 * i] * b[3 * (n - 1 - i)], sum += std::fabs(a[2 * i]), squares += a[2 * i] * a[2 * i];
      if (std::fabs(a[2 * i]) > most) most = std::fabs(a[2 * i]), best = i + 1;
      wanted[3 * (n - 1 - i)] += alpha * a[2 * i];
    }
    const auto same = [&](const char* name, double value) {
      ++calls;
      if (!(std::fabs(result - value) < 1e-5)) printf("%s: %g, not %g\n", name, result, value);
    };
    cublasSdot(handle, n, x, 2, y, -3, &result), same("cublasSdot", dot);
    cublasSasum(handle, n, x, 2, &result), same("cublasSasum", sum);
    cublasSnrm2(handle, n, x, 2, &result), same("cublasSnrm2", std::sqrt(squares));
    cublasIsamax(handle, n, x, 2, &index), result = index, same("cublasIsamax", best);
    cublasSaxpy(handle, n, &alpha, x, 2, y, -3);
    expect("cublasSaxpy", y, wanted, 1e-6);
  }
  {
    float *A = device<float>(a), *x = device<float>(b), *y = device<float>(c);
    Values wanted = c;
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int i = 0; i < m; ++i) sum += a[i + j * ld] * b[i];
      wanted[j] = alpha * sum + beta * c[j];
    }
    cublasSgemv(handle, CUBLAS_OP_T, m, n, &alpha, A, ld, x, 1, &beta, y, 1);
    expect("cublasSgemv", y, wanted, 1e-5);
  }
  printf("%d calls\n", calls);
  float* fresh;
  cudaMalloc(&fresh, ld * ld * sizeof(float));
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, fresh, ld, fresh, ld, &none, fresh, ld);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, ld, &one, device<float>(a), ld,
              device<float>(random_values(ld)), ld, &none, fresh, ld);
}
