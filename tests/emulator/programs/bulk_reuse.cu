// FAULT race: the staging buffer is written again while the bulk store of two tiles ago may still read it.
#include "check.h"
#include "ptx.cuh"
__global__ void epilogue(const int *in, int *out, int tiles) {
  __shared__ __align__(128) int stage[2][128];
  int t = threadIdx.x;
  for (int k = 0; k < tiles; k++) {
#ifndef FAULT
    if (t == 0) bulk_wait_read<1>();  // at most the last tile's store still reads its buffer
#endif
    __syncthreads();
    stage[k & 1][t] = in[k * 128 + t] + k;  //@
    proxy_fence();
    __syncthreads();
    if (t == 0) { bulk_store(out + k * 128, stage[k & 1], sizeof stage[0]); bulk_commit(); }  //@
  }
  if (t == 0) bulk_wait<0>();
}
int main() {
  const int T = 5;
  std::vector<int> v(T * 128), want;
  for (int i = 0; i < T * 128; i++) v[i] = i, want.push_back(i + i / 128);
  int *o = zeros<int>(T * 128);
  epilogue<<<1, 128>>>(to_device(v), o, T);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, T * 128) == want);
}
