// FAULT race: two groups of 64 threads share one named barrier; warps of different groups complete it together.
#include "check.h"
#include "ptx.cuh"
__global__ void groups(const int *in, int *out, int rounds) {
  __shared__ int s[2][64];
  int g = threadIdx.x / 64, t = threadIdx.x % 64, v = in[threadIdx.x];
#ifdef FAULT
  int id = 1;
#else
  int id = 1 + g;
#endif
  for (int r = 0; r < rounds; r++) {
    s[g][t] = v;  //@
    named_sync(id, 64);
    v = s[g][(t + 33) % 64] + 1;  //@
    named_sync(id, 64);
  }
  out[threadIdx.x] = v;
}
int main() {
  std::vector<int> v(128), want(128);
  for (int i = 0; i < 128; i++) v[i] = i * i % 97;
  for (int i = 0; i < 128; i++) want[i] = v[i / 64 * 64 + (i + 4 * 33) % 64] + 4;
  int *o = zeros<int>(128);
  groups<<<1, 128>>>(to_device(v), o, 4);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 128) == want);
}
