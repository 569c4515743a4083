// FAULT async: the registers of tcgen05.ld are used without tcgen05.wait::ld.
#include "check.h"
#include "tcgen05.cuh"
__global__ void __launch_bounds__(128) mm(const half *a, const half *b, float *c) {  // [128 x 16] x [16 x 16]^T
  __shared__ __align__(128) half sa[128 * 16], sb[16 * 16];
  __shared__ __align__(8) uint64_t done;
  __shared__ uint32_t slot;
  int t = threadIdx.x, w = t / 32;
  if (w == 0) tm_alloc(&slot, 32);
  if (t == 0) { mbar_init(&done, 1); mbar_init_fence(); }
  for (int k = 0; k < 16; k++) sa[at(t, k, 128)] = a[t * 16 + k];
  for (int i = t; i < 256; i += 128) sb[at(i / 16, i % 16, 16)] = b[i];
  proxy_fence();
  tm_before();
  __syncthreads();
  tm_after();
  uint32_t acc = slot;
  if (t == 0) {
    tm_mma(acc, desc100(sa, 2048, 128), desc100(sb, 256, 128), idesc_f16(128, 16), 0);  //@
    tm_commit(&done);
  }
  mbar_wait(&done, 0);
  tm_after();
  uint32_t r[16];
  tm_load16(r, acc + (uint32_t(w) * 32 << 16));
#ifndef FAULT
  tm_wait_ld();
#endif
  for (int j = 0; j < 16; j++) c[t * 16 + j] = __uint_as_float(r[j]);  //@
#ifdef FAULT
  tm_wait_ld();
#endif
  tm_before();
  __syncthreads();
  tm_after();
  if (w == 0) tm_free(acc, 32);
}
int main() {
  std::vector<half> a(128 * 16), b(16 * 16);
  for (int i = 0; i < 2048; i++) a[i] = __float2half(float(i % 9) - 4);
  for (int i = 0; i < 256; i++) b[i] = __float2half(float(i % 11) - 5);
  float *c = zeros<float>(128 * 16);
  mm<<<1, 128>>>(to_device(a), to_device(b), c);
  CK(cudaDeviceSynchronize());
  auto r = to_host(c, 2048); bool ok = true;
  for (int i = 0; i < 128; i++) for (int j = 0; j < 16; j++) {
    float s = 0; for (int k = 0; k < 16; k++) s += __half2float(a[i * 16 + k]) * __half2float(b[j * 16 + k]);
    ok &= s == r[i * 16 + j];
  }
  return verdict(ok);
}
