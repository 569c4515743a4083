// FAULT host: the host reads managed memory while the kernel may still be running.
#include "check.h"
__managed__ int total;
__global__ void sum(const int *x, int n) {
  int v = 0;
  for (int i = threadIdx.x; i < n; i += 64) v += x[i];
  v = __reduce_add_sync(~0u, v);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, v);  //@
}
int main() {
  const int n = 300; int *x, want = 0;
  CK(cudaMallocManaged(&x, n * sizeof(int)));
  total = 0;
  for (int i = 0; i < n; i++) want += x[i] = i % 77;
  sum<<<1, 64>>>(x, n);
  CK(cudaGetLastError());
#ifndef FAULT
  CK(cudaDeviceSynchronize());
#endif
  bool ok = total == want;  //@
  CK(cudaDeviceSynchronize());
  CK(cudaFree(x));
  return verdict(ok);
}
