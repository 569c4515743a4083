// FAULT race: no fence between the partial sum and the counter that announces it.
#include "check.h"
__device__ unsigned done;
__global__ void sum(const int *x, int *part, int *out) {
  __shared__ int warp[4];
  __shared__ bool last;
  int t = threadIdx.x, v = __reduce_add_sync(~0u, x[blockIdx.x * 128 + t]);
  if (t % 32 == 0) warp[t / 32] = v;
  __syncthreads();
  if (t == 0) {
    part[blockIdx.x] = warp[0] + warp[1] + warp[2] + warp[3];  //@
#ifndef FAULT
    __threadfence();
#endif
    last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0 for the next launch
    __threadfence();
  }
  __syncthreads();
  if (last && t < 32) {
    v = __reduce_add_sync(~0u, t < gridDim.x ? part[t] : 0);  //@
    if (t == 0) *out = v;
  }
}
int main() {
  std::vector<int> v(128 * 6); int want = 0;
  for (size_t i = 0; i < v.size(); i++) want += v[i] = int(i % 13);
  int *d = to_device(v), *p, *o = zeros<int>(1);
  CK(cudaMalloc(&p, 6 * sizeof(int)));
  for (int i = 0; i < 2; i++) sum<<<6, 128>>>(d, p, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 1)[0] == want);
}
