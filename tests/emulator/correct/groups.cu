// Cooperative groups.

#include "driver.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

KERNEL(tiles_of_four_sizes) {
  const auto block = cg::this_thread_block();
  const unsigned t = threadIdx.x, x = in[t];
  const auto four = cg::tiled_partition<4>(block);
  const auto sixteen = cg::tiled_partition<16>(block);
  const auto two = cg::tiled_partition<2>(four);
  unsigned sum = x + four.shfl_up(x, 1) + sixteen.shfl(x, 5) + two.shfl_xor(x, 1);
  sum += four.any(x % 7 == 0) + 2 * sixteen.all(x % 3 != 9) + four.match_any(x % 2);
  sixteen.sync();
  out[t] = sum + four.meta_group_rank() + sixteen.thread_rank() * two.size();
}

KERNEL(tiles_where_some_take_a_branch) {
  const unsigned t = threadIdx.x;
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  unsigned got = 0;
  if (tile.meta_group_rank() % 2) {
    got = cg::reduce(tile, in[t] % 1000, cg::plus<unsigned>());
  } else {
    got = cg::reduce(tile, in[t], cg::bit_xor<unsigned>());
    tile.sync();
  }
  out[t] = got;
}

KERNEL(coalesced_lanes_share_an_atomic) {
  const unsigned t = threadIdx.x;
  if (in[t] % 4 == 0) {
    const auto active = cg::coalesced_threads();
    unsigned first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(scratch, active.size());
    const unsigned mine = active.shfl(first, 0) + active.thread_rank();
    atomicOr(scratch + 1 + mine / 32, 1u << mine % 32);
    atomicAdd(scratch + 8, active.any(t > 1000) + active.size() * 0);
  }
  __syncthreads();
  if (t == 0) {
    out[0] = scratch[0];
    out[1] = scratch[1];
    out[2] = scratch[2];
  }
}

KERNEL(coalesced_lanes_reduce_and_scan) {
  const unsigned t = threadIdx.x;
  if (lane() % 3 != 1) {
    const auto active = cg::coalesced_threads();
    active.sync();
    const unsigned sum = cg::reduce(active, in[t] % 100, cg::plus<unsigned>());
    // Whatever the groups are: a scan ends with its own group's sum.
    const unsigned upto = cg::inclusive_scan(active, in[t] % 100);
    const unsigned last = active.shfl(upto, active.size() - 1);
    out[t] = last == sum;
  }
}

KERNEL(partition_by_a_label) {
  const unsigned t = threadIdx.x;
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto same = cg::labeled_partition(warp, in[t] % 3);
  out[t] = cg::reduce(same, t, cg::greater<unsigned>()) + 100 * same.size();
}

KERNEL(partition_in_two) {
  const unsigned t = threadIdx.x;
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto half = cg::binary_partition(warp, in[t] % 2);
  out[t] = half.thread_rank() + 100 * cg::reduce(half, in[t] % 8, cg::plus<unsigned>());
}

KERNEL(partition_within_a_branch) {
  const unsigned t = threadIdx.x;
  if (t < 40) {
    const auto active = cg::coalesced_threads();
    const auto even = cg::binary_partition(active, t % 2 == 0);
    even.sync();
    out[t] = even.thread_rank() < even.size();
  }
}

KERNEL(scans_of_tiles) {
  const unsigned t = threadIdx.x;
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  out[t] = cg::exclusive_scan(tile, in[t] % 50) + 1000 * cg::inclusive_scan(tile, in[t] % 9, cg::less<unsigned>());
}

KERNEL(group_of_several_warps) {
  __shared__ cg::block_tile_memory<256> memory;
  const auto block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<64>(block);
  const unsigned t = threadIdx.x;
  const unsigned sum = cg::reduce(tile, in[t] % 100, cg::plus<unsigned>());
  const unsigned first = tile.shfl(in[t], 3);
  tile.sync();
  out[t] = sum + first + tile.any(t == 130);
}

KERNEL(memcpy_async_of_a_group) {
  __shared__ alignas(16) unsigned s[256];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof s);
  cg::wait(block);
  for (unsigned i = threadIdx.x; i < 256; i += 64) out[i] = s[255 - i];
}

KERNEL(memcpy_async_in_batches) {
  __shared__ alignas(16) unsigned s[2][128];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, s[0], in, 512);
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (i < 3) {
      cg::memcpy_async(block, s[(i + 1) % 2], in + 128 * (i + 1), 512);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    sum += s[i % 2][threadIdx.x] + s[i % 2][127 - threadIdx.x];
    block.sync();
  }
  out[threadIdx.x] = sum;
}

KERNEL(block_barrier_split_in_two) {
  __shared__ unsigned s[64];
  auto block = cg::this_thread_block();
  s[threadIdx.x] = in[threadIdx.x];
  auto token = block.barrier_arrive();
  const unsigned own = in[64 + threadIdx.x] * 3;
  block.barrier_wait(std::move(token));
  out[threadIdx.x] = own + s[63 - threadIdx.x];
}

KERNEL(grid_that_meets_four_times) {
  const auto grid = cg::this_grid();
  unsigned *a = scratch, *b = scratch + grid.size();
  const unsigned t = grid.thread_rank(), n = grid.size();
  a[t] = in[t] % 1000;
  for (unsigned step = 1; step < 16; step *= 4) {
    grid.sync();
    b[t] = a[t] + a[(t + step) % n];
    grid.sync();
    a[t] = b[t] + 1;
  }
  out[t] = a[t];
}

KERNEL(elected_member_of_a_group) {
  const unsigned t = threadIdx.x;
  const auto active = cg::coalesced_threads();
  cg::invoke_one(active, [&] { atomicAdd(out, 1); });
  const unsigned told = cg::invoke_one_broadcast(active, [&] { return 7u; });
  out[1 + t] = told;
}

KERNEL(atomic_update_by_a_group) {
  const unsigned t = threadIdx.x;
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> sum(scratch[0]);
  cg::reduce_update_async(warp, sum, in[t] % 100, cg::plus<unsigned>());
  __syncthreads();
  if (t == 0) out[0] = sum.load();
}

KERNEL_OF(__cluster_dims__(4), cluster_adds_its_sums) {
  __shared__ unsigned sum;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[thread()] % 1000);
  cluster.sync();
  if (threadIdx.x < 4) {
    const unsigned part = *cluster.map_shared_rank(&sum, threadIdx.x);
    atomicAdd(out + blockIdx.x, part);
  }
  cluster.sync();
}

KERNEL_OF(__cluster_dims__(2), cluster_histogram) {
  __shared__ unsigned bins[32];
  const auto cluster = cg::this_cluster();
  if (threadIdx.x < 32) bins[threadIdx.x] = 0;
  cluster.sync();
  for (unsigned i = thread(); i < 512; i += 128) {
    const unsigned bin = in[i] % 64;
    atomicAdd(cluster.map_shared_rank(bins, bin / 32) + bin % 32, 1);
  }
  cluster.sync();
  if (threadIdx.x < 32) out[32 * cluster.block_rank() + threadIdx.x] = bins[threadIdx.x];
}

KERNEL_OF(__cluster_dims__(2), cluster_barrier_split_in_two) {
  __shared__ unsigned s[64];
  const auto cluster = cg::this_cluster();
  s[threadIdx.x] = in[thread()];
  cluster.barrier_arrive();
  const unsigned own = in[threadIdx.x];
  cluster.barrier_wait();
  const unsigned got = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x];
  cluster.barrier_arrive();
  out[thread()] = own ^ got;
  cluster.barrier_wait();
}
