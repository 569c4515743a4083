// FAULT race: thread 0 raises the flag before the other threads of its CTA have stored their partial sums.
#include "check.h"
__global__ void splitk(const float *a, float *work, int *flag, float *out) {
  int t = threadIdx.x;
  float acc = 0;
  for (int k = blockIdx.x * 8; k < blockIdx.x * 8 + 8; k++) acc += a[k * 96 + t];
  if (blockIdx.x == 0) {
    work[t] = acc;  //@
#ifndef FAULT
    __syncthreads();
#endif
    if (t == 0) { __threadfence(); atomicExch(flag, 1); }
  } else {
    if (t == 0) { while (atomicAdd(flag, 0) == 0) __nanosleep(20); __threadfence(); }
    __syncthreads();
    out[t] = acc + work[t];  //@
  }
}
int main() {
  std::vector<float> a(16 * 96), want(96);
  for (int i = 0; i < 16 * 96; i++) want[i % 96] += a[i] = float(i % 11);
  float *d = to_device(a), *w, *o = zeros<float>(96); int *f = zeros<int>(1);
  CK(cudaMalloc(&w, 96 * sizeof(float)));
  splitk<<<2, 96>>>(d, w, f, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 96) == want);
}
