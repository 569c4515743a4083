// FAULT race: no barrier at the end of the k loop; the next tile overwrites what slow warps still multiply.
#include <cuda_bf16.h>
#include "check.h"
template <int T> __global__ void gemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  __shared__ __nv_bfloat16 sa[T][T + 2], sb[T][T + 2];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * T + y, col = blockIdx.x * T + x;
  float acc = 0;
  for (int k0 = 0; k0 < k; k0 += T) {
    sa[y][x] = a[row * k + k0 + x];  //@
    sb[y][x] = b[(k0 + y) * n + col];  //@
    __syncthreads();
#pragma unroll
    for (int i = 0; i < T; i++) acc = fmaf(__bfloat162float(sa[y][i]), __bfloat162float(sb[i][x]), acc);  //@
#ifndef FAULT
    __syncthreads();
#endif
  }
  c[row * n + col] = acc;
}
int main() {
  const int M = 16, N = 32, K = 48;
  std::vector<__nv_bfloat16> a(M * K), b(K * N);
  for (size_t i = 0; i < a.size(); i++) a[i] = __float2bfloat16(float(i % 5) - 2);
  for (size_t i = 0; i < b.size(); i++) b[i] = __float2bfloat16(float(i % 7) - 3);
  auto *da = to_device(a), *db = to_device(b); float *c = zeros<float>(M * N);
  gemm<16><<<dim3(N / 16, M / 16), dim3(16, 16)>>>(da, db, c, N, K);
  CK(cudaDeviceSynchronize());
  auto r = to_host(c, M * N); bool ok = true;
  for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) {
    float s = 0; for (int q = 0; q < K; q++) s += __bfloat162float(a[i * K + q]) * __bfloat162float(b[q * N + j]);
    ok &= s == r[i * N + j];
  }
  return verdict(ok);
}
