// FAULT race: cub's temporary storage is used again without a barrier.
#include <cub/block/block_scan.cuh>
#include "check.h"
using Scan = cub::BlockScan<int, 128, cub::BLOCK_SCAN_WARP_SCANS>;
__global__ void scan(const int *in, int *out, int n) {
  __shared__ Scan::TempStorage temp;
  int carry = 0;
  for (int k = 0; k < n; k += 128) {
    int v = in[k + threadIdx.x], sum;
    Scan(temp).InclusiveSum(v, v, sum);  //@
    out[k + threadIdx.x] = carry + v;
    carry += sum;
#ifndef FAULT
    __syncthreads();
#endif
  }
}
int main() {
  const int n = 512; int a = 0;
  std::vector<int> v(n), want(n);
  for (int i = 0; i < n; i++) v[i] = i % 12 - 4, want[i] = a += v[i];
  int *o = zeros<int>(n);
  scan<<<1, 128>>>(to_device(v), o, n);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, n) == want);
}
