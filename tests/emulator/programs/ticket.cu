// FAULT race: the tile's number is replaced by thread 0 while others have not read it yet.
#include "check.h"
__global__ void persistent(const int *in, int *out, int tiles, int *next) {
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);  //@
    __syncthreads();
    int t = tile;  //@
#ifndef FAULT
    __syncthreads();
#endif
    if (t >= tiles) return;
    int i = t * blockDim.x + threadIdx.x;
    out[i] = 2 * in[i];
  }
}
int main() {
  std::vector<int> v(64 * 12), want;
  for (size_t i = 0; i < v.size(); i++) v[i] = int(i), want.push_back(int(2 * i));
  int *d = to_device(v), *o = zeros<int>(v.size()), *n = zeros<int>(1);
  persistent<<<3, 64>>>(d, o, 12, n);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, v.size()) == want);
}
