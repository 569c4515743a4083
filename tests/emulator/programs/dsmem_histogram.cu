// FAULT exit: a CTA may leave while others still add to its shared memory; the last cluster.sync is missing.
#include <cooperative_groups.h>
#include "check.h"
namespace cg = cooperative_groups;
constexpr int PER = 32;
__global__ void __cluster_dims__(2) histogram(const int *key, int n, int *out) {
  __shared__ int h[PER];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < PER) h[threadIdx.x] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int k = key[i];
    atomicAdd(cluster.map_shared_rank(h, k / PER) + k % PER, 1);  //@
  }
#ifdef FAULT
  __syncthreads();
#else
  cluster.sync();
#endif
  if (threadIdx.x < PER) atomicAdd(&out[cluster.block_rank() * PER + threadIdx.x], h[threadIdx.x]);  //@
}
int main() {
  std::vector<int> k(600), want(2 * PER);
  for (int i = 0; i < 600; i++) want[k[i] = (i * i) % 61]++;
  int *o = zeros<int>(2 * PER);
  histogram<<<4, 64>>>(to_device(k), 600, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 2 * PER) == want);
}
