// FAULT host: more than 48 KB of dynamic shared memory without the attribute; the launch fails and nobody looks.
#include "check.h"
__global__ void reverse(const int *in, int *out, int n) {
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = s[n - 1 - i];
}
int main() {
  const int n = 15000;
  std::vector<int> v(n), want(n);
  for (int i = 0; i < n; i++) v[i] = i, want[n - 1 - i] = i;
  int *d = to_device(v), *o = zeros<int>(n);
#ifndef FAULT
  CK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, n * sizeof(int)));
#endif
  reverse<<<1, 256, n * sizeof(int)>>>(d, o, n);  //@
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, n) == want);
}
