// FAULT async: the accumulators are stored while the wgmma group may still be running.
#include "check.h"
#include "wgmma.cuh"
__global__ void __launch_bounds__(128) mm(const half *a, const half *b, float *c, int ks) {
  __shared__ __align__(128) half sa[4][64 * 16], sb[4][8 * 16];
  int t = threadIdx.x;
  for (int k = 0; k < ks; k++) {
    for (int i = t; i < 64 * 16; i += 128) sa[k][at(i / 16, i % 16, 64)] = a[i / 16 * 16 * ks + k * 16 + i % 16];
    sb[k][at(t / 16, t % 16, 8)] = b[t / 16 * 16 * ks + k * 16 + t % 16];
  }
  proxy_fence();
  __syncthreads();
  float d[4] = {};
  wg_fence();
  for (int k = 0; k < ks; k++) { wg_mma(d, desc(sa[k], 1024, 128), desc(sb[k], 128, 256), k > 0); wg_commit(); }  //@
#ifdef FAULT
  wg_wait<1>();  //@
#else
  wg_wait<0>();
#endif
  int row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
  c[row * 8 + col] = d[0], c[row * 8 + col + 1] = d[1];  //@
  c[(row + 8) * 8 + col] = d[2], c[(row + 8) * 8 + col + 1] = d[3];
}
int main() {
  const int K = 64;
  std::vector<half> a(64 * K), b(8 * K);
  for (int i = 0; i < 64 * K; i++) a[i] = __float2half(float(i % 7) - 3);
  for (int i = 0; i < 8 * K; i++) b[i] = __float2half(float(i % 5) - 2);
  float *c = zeros<float>(64 * 8);
  mm<<<1, 128>>>(to_device(a), to_device(b), c, K / 16);
  CK(cudaDeviceSynchronize());
  auto r = to_host(c, 512); bool ok = true;
  for (int i = 0; i < 64; i++) for (int j = 0; j < 8; j++) {
    float s = 0; for (int k = 0; k < K; k++) s += __half2float(a[i * K + k]) * __half2float(b[j * K + k]);
    ok &= s == r[i * 8 + j];
  }
  return verdict(ok);
}
