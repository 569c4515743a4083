// FAULT race: expect_tx counts A's bytes only, so the wait ends before B has arrived.
#include "check.h"
#include "ptx.cuh"
__global__ void dot(const float *a, const float *b, float *out) {
  __shared__ __align__(128) float sa[128], sb[128];
  __shared__ __align__(8) uint64_t full;
  int t = threadIdx.x;
  if (t == 0) { mbar_init(&full, 1); mbar_init_fence(); }
  __syncthreads();
  if (t == 0) {
#ifdef FAULT
    mbar_expect(&full, sizeof sa);  //@
#else
    mbar_expect(&full, sizeof sa + sizeof sb);
#endif
    bulk_load(sa, a + blockIdx.x * 128, sizeof sa, &full);
    bulk_load(sb, b + blockIdx.x * 128, sizeof sb, &full);  //@
  }
  mbar_wait(&full, 0);
  out[blockIdx.x * 128 + t] = sa[t] * sb[127 - t];  //@
}
int main() {
  std::vector<float> a(256), b(256), want(256);
  for (int i = 0; i < 256; i++) a[i] = float(i % 9), b[i] = float(i % 14);
  for (int i = 0; i < 256; i++) want[i] = a[i] * b[i / 128 * 128 + 127 - i % 128];
  float *o = zeros<float>(256);
  dot<<<2, 128>>>(to_device(a), to_device(b), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 256) == want);
}
