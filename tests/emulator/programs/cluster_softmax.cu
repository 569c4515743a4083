// FAULT race: a peer's partial maximum is read after a barrier of the own block only.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "check.h"
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(4) rowmax(const float *x, float *out) {
  __shared__ float part[2], best;
  auto cluster = cg::this_cluster();
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  float m = cg::reduce(tile, x[blockIdx.x * 64 + threadIdx.x], cg::greater<float>());
  if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = m;
  block.sync();
  if (block.thread_rank() == 0) best = fmaxf(part[0], part[1]);  //@
#ifdef FAULT
  block.sync();
#else
  cluster.sync();
#endif
  m = best;
  for (unsigned r = 0; r < cluster.num_blocks(); r++) m = fmaxf(m, *cluster.map_shared_rank(&best, r));  //@
  cluster.sync();  // nobody leaves while its memory is read
  if (block.thread_rank() == 0) out[blockIdx.x] = m;
}
int main() {
  std::vector<float> x(8 * 64);
  for (int i = 0; i < 512; i++) x[i] = float((i * 131) % 509);
  float *o = zeros<float>(8);
  rowmax<<<8, 64>>>(to_device(x), o);
  CK(cudaDeviceSynchronize());
  auto r = to_host(o, 8); bool ok = true;
  for (int c = 0; c < 8; c++) { float m = 0; for (int i = 0; i < 256; i++) m = std::max(m, x[c / 4 * 256 + i]); ok &= m == r[c]; }
  return verdict(ok);
}
