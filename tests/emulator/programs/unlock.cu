// FAULT race: the lock is released without a fence after the stores that it protects.
#include "check.h"
struct Stat { int n; float lo, hi; };
__global__ void minmax(const float *x, Stat *s, int *lock) {
  float v = x[blockIdx.x * 32 + threadIdx.x], lo = v, hi = v;
  for (int d = 16; d; d >>= 1) {
    lo = fminf(lo, __shfl_xor_sync(~0u, lo, d));
    hi = fmaxf(hi, __shfl_xor_sync(~0u, hi, d));
  }
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1)) __nanosleep(10);
    __threadfence();
    s->lo = fminf(s->lo, lo);  //@
    s->hi = fmaxf(s->hi, hi);  //@
    s->n++;  //@
#ifndef FAULT
    __threadfence();
#endif
    atomicExch(lock, 0);
  }
}
int main() {
  std::vector<float> v(32 * 8);
  for (int i = 0; i < 256; i++) v[i] = float((i * 91) % 257);
  std::vector<Stat> s{{0, 1e9f, -1e9f}};
  Stat *d = to_device(s); int *l = zeros<int>(1);
  minmax<<<8, 32>>>(to_device(v), d, l);
  CK(cudaDeviceSynchronize());
  s = to_host(d, 1);
  float lo = 1e9f, hi = -1e9f; for (float f : v) lo = std::min(lo, f), hi = std::max(hi, f);
  return verdict(s[0].n == 8 && s[0].lo == lo && s[0].hi == hi);
}
