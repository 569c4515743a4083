// FAULT race: wgmma reads through the async proxy what threads stored, without a proxy fence.
#include "check.h"
#include "wgmma.cuh"
__global__ void __launch_bounds__(256) two_groups(const half *a, const half *b, float *c) {
  __shared__ __align__(128) half sa[2][64 * 16], sb[8 * 16];
  int g = threadIdx.x / 128, t = threadIdx.x % 128;
  for (int i = t; i < 64 * 16; i += 128) sa[g][at(i / 16, i % 16, 64)] = a[g * 1024 + i];  //@
  if (g == 0) sb[at(t / 16, t % 16, 8)] = b[t];  //@
#ifndef FAULT
  proxy_fence();
#endif
  __syncthreads();
  float d[4];
  wg_fence();
  wg_mma(d, desc(sa[g], 1024, 128), desc(sb, 128, 256), 0);  //@
  wg_commit();
  wg_wait<0>();
  int row = g * 64 + t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
  c[row * 8 + col] = d[0], c[row * 8 + col + 1] = d[1];
  c[(row + 8) * 8 + col] = d[2], c[(row + 8) * 8 + col + 1] = d[3];
}
int main() {
  std::vector<half> a(128 * 16), b(8 * 16);
  for (int i = 0; i < 2048; i++) a[i] = __float2half(float(i % 9) - 4);
  for (int i = 0; i < 128; i++) b[i] = __float2half(float(i % 11) - 5);
  float *c = zeros<float>(1024);
  two_groups<<<1, 256>>>(to_device(a), to_device(b), c);
  CK(cudaDeviceSynchronize());
  auto r = to_host(c, 1024); bool ok = true;
  for (int i = 0; i < 128; i++) for (int j = 0; j < 8; j++) {
    float s = 0; for (int k = 0; k < 16; k++) s += __half2float(a[i * 16 + k]) * __half2float(b[j * 16 + k]);
    ok &= s == r[i * 8 + j];
  }
  return verdict(ok);
}
