#include <cublasLt.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
#include <cmath>
int main() {
  const int m = 24, n = 17, k = 33;
  std::vector<float> a(k * m), b(k * n), c(m * n), bias(m), d(m * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(1.0 + i);
  for (size_t i = 0; i < b.size(); ++i) b[i] = std::cos(2.0 + i);
  for (size_t i = 0; i < c.size(); ++i) c[i] = std::sin(0.5 * i);
  for (int i = 0; i < m; ++i) bias[i] = 0.1f * i - 1;
  float *A, *B, *C, *D, *V;
  cudaMalloc(&A, 4 * a.size()); cudaMalloc(&B, 4 * b.size()); cudaMalloc(&C, 4 * c.size()); cudaMalloc(&D, 4 * d.size()); cudaMalloc(&V, 4 * m);
  cudaMemcpy(A, a.data(), 4 * a.size(), cudaMemcpyHostToDevice); cudaMemcpy(B, b.data(), 4 * b.size(), cudaMemcpyHostToDevice);
  cudaMemcpy(C, c.data(), 4 * c.size(), cudaMemcpyHostToDevice); cudaMemcpy(V, bias.data(), 4 * m, cudaMemcpyHostToDevice);
  cublasLtHandle_t handle; cublasLtCreate(&handle);
  cublasLtMatmulDesc_t desc; cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasOperation_t turned = CUBLAS_OP_T;
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned);
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &V, sizeof V);
  cublasLtMatrixLayout_t la, lb, lc;
  cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, k, m, k); cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, k, n, k); cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, m, n, m);
  float alpha = 1.5f, beta = 0.5f;
  int status = cublasLtMatmul(handle, desc, &alpha, A, la, B, lb, &beta, C, lc, D, lc, nullptr, nullptr, 0, 0);
  cudaMemcpy(d.data(), D, 4 * d.size(), cudaMemcpyDeviceToHost);
  double worst = 0;
  for (int j = 0; j < n; ++j) for (int i = 0; i < m; ++i) {
    double sum = 0; for (int p = 0; p < k; ++p) sum += double(a[p + i * k]) * b[p + j * k];
    worst = std::max(worst, std::abs(std::max(0.0, 1.5 * sum + 0.5 * c[i + j * m] + bias[i]) - d[i + j * m]));
  }
  printf("%d %s\n", status, worst < 1e-4 ? "right" : "wrong");
  // Halves, scaled by halves.
  const __half two = 2.0f, none = 0.0f, ones[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  __half *H, h[4];
  cudaMalloc(&H, 2 * sizeof ones); cudaMemcpy(H, ones, sizeof ones, cudaMemcpyHostToDevice);
  cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_16F, CUDA_R_16F);
  cublasLtMatrixLayoutCreate(&la, CUDA_R_16F, 2, 2, 2);
  status = cublasLtMatmul(handle, desc, &two, H, la, H, la, &none, H + 4, la, H + 4, la, nullptr, nullptr, 0, 0);
  cudaMemcpy(h, H + 4, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d %g %g %g %g\n", status, float(h[0]), float(h[1]), float(h[2]), float(h[3]));
  return 0;
}
