// FAULT race: no proxy fence between the threads' stores to shared memory and the bulk store that reads them.
#include "check.h"
#include "ptx.cuh"
__global__ void scale(const float *in, float *out) {
  __shared__ __align__(128) float s[256];
  int t = threadIdx.x;
  s[t] = 2 * in[blockIdx.x * 256 + t];  //@
#ifndef FAULT
  proxy_fence();
#endif
  __syncthreads();
  if (t == 0) {
    bulk_store(out + blockIdx.x * 256, s, sizeof s);  //@
    bulk_commit();
    bulk_wait_read<0>();
  }
}
int main() {
  std::vector<float> v(512), want;
  for (int i = 0; i < 512; i++) v[i] = float(i), want.push_back(float(2 * i));
  float *o = zeros<float>(512);
  scale<<<2, 256>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 512) == want);
}
