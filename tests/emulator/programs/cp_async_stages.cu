// FAULT race: wait_group leaves one group too many pending.
#include "check.h"
#include "ptx.cuh"
template <int STAGES> __global__ void sum_tiles(const float *x, float *out, int tiles) {
  __shared__ __align__(16) float s[STAGES][256];
  int t = threadIdx.x;
  auto load = [&](int k) { if (k < tiles) cp16(&s[k % STAGES][4 * t], x + k * 256 + 4 * t); cp_commit(); };  //@
  for (int k = 0; k < STAGES - 1; k++) load(k);
  float acc[4] = {};
  for (int k = 0; k < tiles; k++) {
#ifdef FAULT
    cp_wait<STAGES - 1>();
#else
    cp_wait<STAGES - 2>();
#endif
    __syncthreads();          // also: everybody has read the buffer that is filled next
    load(k + STAGES - 1);     // empty groups keep the count
    for (int i = 0; i < 4; i++) acc[i] += s[k % STAGES][(t + 64 * i + 17) % 256];  //@
  }
  for (int i = 0; i < 4; i++) out[(t + 64 * i + 17) % 256] = acc[i];
}
int main() {
  const int T = 7;
  std::vector<float> x(T * 256), want(256);
  for (int i = 0; i < T * 256; i++) want[i % 256] += x[i] = float(i % 23);
  float *o = zeros<float>(256);
  sum_tiles<3><<<1, 64>>>(to_device(x), o, T);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 256) == want);
}
