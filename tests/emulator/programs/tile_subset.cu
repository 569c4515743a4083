// FAULT mask: half of a tile calls the tile's collective.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "check.h"
namespace cg = cooperative_groups;
__global__ void sums(const int *x, int *out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int v = x[threadIdx.x];
#ifdef FAULT
  if (warp.thread_rank() < 16) {
    int s = cg::reduce(warp, v, cg::plus<int>());  //@
    if (warp.thread_rank() == 0) out[warp.meta_group_rank()] = s;
  }
#else
  auto half = cg::tiled_partition<16>(warp);
  if (half.meta_group_rank() == 0) {  // one whole tile of 16 goes this way
    int s = cg::reduce(half, v, cg::plus<int>());
    if (half.thread_rank() == 0) out[warp.meta_group_rank()] = s;
  }
#endif
}
int main() {
  std::vector<int> v(64), want(2);
  for (int i = 0; i < 64; i++) { v[i] = i; if (i % 32 < 16) want[i / 32] += i; }
  int *o = zeros<int>(2);
  sums<<<1, 64>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 2) == want);
}
