// FAULT hang: the producer begins with parity 0 on a fresh barrier, as a consumer would.
#include "check.h"
#include "ptx.cuh"
template <int STAGES> __global__ void copy(const int *in, int *out, int tiles) {
  __shared__ __align__(128) int s[STAGES][64];
  __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
  int t = threadIdx.x;
  if (t == 0) { for (int i = 0; i < STAGES; i++) { mbar_init(full + i, 1); mbar_init(empty + i, 2); } mbar_init_fence(); }
  __syncthreads();
  if (t >= 64) {
#ifdef FAULT
    unsigned phase = 0;
#else
    unsigned phase = 1;  // the phase before the first counts as complete
#endif
    for (int k = 0, st = 0; k < tiles; k++) {
      if (t == 64) {
        mbar_wait(empty + st, phase);  //@
        mbar_expect(full + st, sizeof s[0]);
        bulk_load(s[st], in + k * 64, sizeof s[0], full + st);
      }
      if (++st == STAGES) st = 0, phase ^= 1;
    }
  } else {
    unsigned phase = 0;
    for (int k = 0, st = 0; k < tiles; k++) {
      mbar_wait(full + st, phase);  //@
      out[k * 64 + t] = s[st][63 - t];
      __syncwarp();
      if (t % 32 == 0) mbar_arrive(empty + st);
      if (++st == STAGES) st = 0, phase ^= 1;
    }
  }
}
int main() {
  const int T = 8;
  std::vector<int> v(T * 64), want;
  for (int i = 0; i < T * 64; i++) v[i] = i;
  for (int i = 0; i < T * 64; i++) want.push_back(i / 64 * 64 + 63 - i % 64);
  int *o = zeros<int>(T * 64);
  copy<3><<<1, 96>>>(to_device(v), o, T);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, T * 64) == want);
}
