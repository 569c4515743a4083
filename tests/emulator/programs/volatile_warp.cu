// FAULT race: the warp-synchronous tail of an old reduction, volatile and without __syncwarp.
#include "check.h"
__global__ void reduce(const float *x, float *out) {
  __shared__ float s[128 + 32];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 128 + t];
  if (t < 32) s[128 + t] = 0;
  __syncthreads();
  for (int d = 64; d > 16; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t < 32) {
#ifdef FAULT
    volatile float *w = s;
    for (int d = 16; d; d >>= 1) w[t] += w[t + d];  //@
#else
    float v = s[t];
    for (int d = 16; d; d >>= 1) {
      v += s[t + d];  // lanes d..31 read what nobody needs, but what is written
      __syncwarp();
      s[t] = v;
      __syncwarp();
    }
#endif
    if (t == 0) out[blockIdx.x] = s[0];
  }
}
int main() {
  std::vector<float> v(256); float a = 0, b = 0;
  for (int i = 0; i < 256; i++) { v[i] = float(i % 17); (i < 128 ? a : b) += v[i]; }
  float *d = to_device(v), *o = zeros<float>(2);
  reduce<<<2, 128>>>(d, o);
  CK(cudaDeviceSynchronize());
  auto r = to_host(o, 2);
  return verdict(r[0] == a && r[1] == b);
}
