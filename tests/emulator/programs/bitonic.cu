// FAULT race: after the step with j = 32 only the warp is synchronised, though its pairs span two warps.
#include <algorithm>
#include "check.h"
__global__ void bitonic(int *g) {
  __shared__ int s[256];
  unsigned i = threadIdx.x;
  s[i] = g[i];
  __syncthreads();
  for (unsigned k = 2; k <= 256; k <<= 1)
    for (unsigned j = k >> 1; j; j >>= 1) {
      unsigned p = i ^ j;
      if (p > i) {
        int a = s[i], b = s[p];  //@
        if ((a > b) == ((i & k) == 0)) s[i] = b, s[p] = a;  //@
      }
#ifdef FAULT
      constexpr unsigned inside = 32;
#else
      constexpr unsigned inside = 16;
#endif
      if (j > inside || j == 1) __syncthreads();  // j == 1: the next k begins with wide pairs
      else __syncwarp();
    }
  g[i] = s[i];
}
int main() {
  std::vector<int> v(256);
  for (int i = 0; i < 256; i++) v[i] = (i * 7919) % 1009;
  int *d = to_device(v);
  bitonic<<<1, 256>>>(d);
  CK(cudaDeviceSynchronize());
  std::sort(v.begin(), v.end());
  return verdict(to_host(d, 256) == v);
}
