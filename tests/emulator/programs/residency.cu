// FAULT hang: every CTA waits for the one with the next higher number, and more CTAs are launched than can be resident.
#include "check.h"
__global__ void chain(const int *x, int *acc, int *flag) {
  extern __shared__ int big[];  // 160 KB: one CTA per SM
#ifdef FAULT
  int b = blockIdx.x, before = b + 1 < gridDim.x ? b + 1 : -1;
#else
  if (threadIdx.x == 0) big[0] = atomicAdd(&flag[gridDim.x], 1);  // in the order in which CTAs begin
  __syncthreads();
  int b = gridDim.x - 1 - big[0], before = b + 1 < gridDim.x ? b + 1 : -1;
#endif
  if (threadIdx.x == 0) {
    int s = x[b];
    if (before >= 0) {
      while (atomicAdd(&flag[before], 0) == 0) __nanosleep(100);  //@
      __threadfence();
      s += acc[before];
    }
    acc[b] = s;
    __threadfence();
    atomicExch(&flag[b], 1);
  }
}
int main() {
  const int B = 140;
  std::vector<int> x(B); int want = 0;
  for (int i = 0; i < B; i++) want += x[i] = i;
  int *acc = zeros<int>(B), *flag = zeros<int>(B + 1);
  CK(cudaFuncSetAttribute(chain, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 * 1024));
  chain<<<B, 32, 160 * 1024>>>(to_device(x), acc, flag);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(acc, 1)[0] == want);
}
