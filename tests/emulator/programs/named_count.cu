// FAULT race or hang: the named barrier's count forgets the producing warp.
#include "check.h"
#include "ptx.cuh"
enum { FULL = 1, EMPTY = 2 };
__global__ void specialised(const int *in, int *out, int tiles) {
  __shared__ int buf[32];
  int w = threadIdx.x / 32, lane = threadIdx.x % 32;
#ifdef FAULT
  constexpr int CONSUMERS = 64, ALL = 64;
#else
  constexpr int CONSUMERS = 64, ALL = CONSUMERS + 32;
#endif
  if (w == 2) {
    for (int k = 0; k < tiles; k++) {
      if (k) named_sync(EMPTY, CONSUMERS + 32);
      buf[lane] = in[k * 32 + lane];  //@
      named_arrive(FULL, ALL);  //@
    }
  } else {
    for (int k = 0; k < tiles; k++) {
      named_sync(FULL, ALL);  //@
      out[(k * 2 + w) * 32 + lane] = buf[31 - lane] + w;  //@
      if (k + 1 < tiles) named_arrive(EMPTY, CONSUMERS + 32);
    }
  }
}
int main() {
  const int T = 4;
  std::vector<int> v(T * 32), want(T * 64);
  for (int i = 0; i < T * 32; i++) v[i] = i;
  for (int k = 0; k < T; k++) for (int w = 0; w < 2; w++) for (int l = 0; l < 32; l++) want[(k * 2 + w) * 32 + l] = v[k * 32 + 31 - l] + w;
  int *o = zeros<int>(T * 64);
  specialised<<<1, 96>>>(to_device(v), o, T);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, T * 64) == want);
}
