// Cooperative groups and libcu++: the library's words for what threads do together, right and with a fault.

#include "driver.cuh"
#include "faults.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

KERNEL(grid_meets_once_of_twice) {
  const auto grid = cg::this_grid();
  const unsigned t = grid.thread_rank(), n = grid.size();
  scratch[t] = in[t];
  grid.sync();
  const unsigned x = scratch[(t + 64) % n];
  RIGHT(grid.sync());
  FAULT(__syncthreads());
  scratch[t] = x + 1;
  grid.sync();
  out[t] = scratch[(t + 64) % n];
}

KERNEL(grid_met_by_the_even_blocks) {
  const auto grid = cg::this_grid();
  const unsigned t = grid.thread_rank();
  scratch[t] = in[t];
  RIGHT(grid.sync());
  FAULT(if (blockIdx.x % 2 == 0) grid.sync());
  out[t] = scratch[255 - t];
}

KERNEL(block_met_by_the_even_threads) {
  __shared__ unsigned s[64];
  const auto block = cg::this_thread_block();
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  if (t % 2 == 0) {
    s[t] += 1;
    FAULT(block.sync());
  }
  RIGHT(block.sync());
  out[t] = s[63 - t];
}

KERNEL(sum_of_a_tile_wanted_by_all_its_lanes) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  unsigned sum = in[threadIdx.x] % 1000;
  for (unsigned step = 4; step > 0; step /= 2) {
    RIGHT(sum += tile.shfl_xor(sum, step));
    FAULT(sum += tile.shfl_down(sum, step));
  }
  out[threadIdx.x] = sum;
}

KERNEL(place_that_only_the_leader_has) {
  const unsigned t = threadIdx.x;
  if (in[t] % 2) {
    const auto active = cg::coalesced_threads();
    unsigned first RIGHT(= 0);
    if (active.thread_rank() == 0) first = atomicAdd(scratch, active.size());
    RIGHT(first = active.shfl(first, 0));
    atomicAdd(out + (first + active.thread_rank()) % 64, 1);
  }
}

KERNEL(copy_of_a_group_without_its_wait) {
  __shared__ alignas(16) unsigned s[64];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, cuda::aligned_size_t<16>(256));
  RIGHT(cg::wait(block));
  FAULT(block.sync());
  out[threadIdx.x] = s[63 - threadIdx.x];
}

KERNEL(batches_of_a_group_waited_for_one_too_few) {
  __shared__ alignas(16) unsigned s[2][64];
  const auto block = cg::this_thread_block();
  const unsigned t = threadIdx.x;
  cg::memcpy_async(block, s[0], in, cuda::aligned_size_t<16>(256));
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (i < 3) {
      cg::memcpy_async(block, s[(i + 1) % 2], in + 64 * (i + 1), cuda::aligned_size_t<16>(256));
      cg::wait_prior<1>(block);
    } else {
      RIGHT(cg::wait(block));
      FAULT(cg::wait_prior<1>(block));
    }
    sum = sum * 3 + s[i % 2][63 - t];
    block.sync();
  }
  out[t] = sum;
}

KERNEL(barrier_of_the_library_waited_for_too_late) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  __syncthreads();
  s[t] = in[t];
  auto token = bar.arrive();
  const unsigned mine = in[64 + t] * 3;
  RIGHT(bar.wait(std::move(token)));
  const unsigned x = s[63 - t];
  FAULT(bar.wait(std::move(token)));
  out[t] = x + mine;
}

KERNEL(barrier_that_a_thread_leaves_without_dropping) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  __syncthreads();
  if (t >= 48) {
    s[t] = t;
    RIGHT(bar.arrive_and_drop());
    return;
  }
  s[t] = in[t];
  bar.arrive_and_wait();
  const unsigned x = s[63 - t];
  bar.arrive_and_wait();
  s[t] = x;
  bar.arrive_and_wait();
  out[t] = s[47 - t];
}

KERNEL(stage_of_a_pipeline_released_before_its_use) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) unsigned s[2][64];
  const auto block = cg::this_thread_block();
  const unsigned t = threadIdx.x;
  auto pipe = cuda::make_pipeline(block, &state);
  unsigned sum = 0;
  for (unsigned get = 0, put = 0; get < 6; ++get) {
    for (; put < 6 && put < get + 2; ++put) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[put % 2], in + 64 * put, cuda::aligned_size_t<16>(256), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    FAULT(pipe.consumer_release());
    FAULT(if (get < 4) { pipe.producer_acquire(); cuda::memcpy_async(block, s[put % 2], in + 64 * put, cuda::aligned_size_t<16>(256), pipe); pipe.producer_commit(); ++put; });
    sum = sum * 3 + s[get % 2][63 - t];
    RIGHT(pipe.consumer_release());
  }
  out[t] = sum;
}

KERNEL(latch_that_counts_one_warp) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char memory[sizeof(Latch)];
  __shared__ unsigned s[64];
  Latch &latch = *reinterpret_cast<Latch *>(memory);
  const unsigned t = threadIdx.x;
  if (t == 0) new (&latch) Latch(RIGHT(64) FAULT(32));
  __syncthreads();
  s[t] = in[t];
  RIGHT(latch.count_down());
  FAULT(if (t < 32) latch.count_down());
  latch.wait();
  out[t] = s[63 - t];
}

KERNEL(ticket_of_an_atomic_ref_of_the_block) {
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  scratch[thread()] = in[thread()];
  __syncthreads();
  if (t == 0) {
    RIGHT(cuda::atomic_ref<unsigned, cuda::thread_scope_device> ticket(scratch[4000]));
    FAULT(cuda::atomic_ref<unsigned, cuda::thread_scope_block> ticket(scratch[4000]));
    last = ticket.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += scratch[64 * i + t];
  out[t] = sum;
}

KERNEL(published_by_a_relaxed_store) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(scratch[1000]);
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[t] = in[t];
    __syncthreads();
    if (t == 0) flag.store(1, RIGHT(cuda::memory_order_release) FAULT(cuda::memory_order_relaxed));
  } else {
    if (t == 0)
      while (!flag.load(cuda::memory_order_acquire)) {
      }
    __syncthreads();
    out[t] = scratch[63 - t];
  }
}

KERNEL(turn_never_handed_on) {
  __shared__ cuda::atomic<unsigned, cuda::thread_scope_block> turn;
  const unsigned t = threadIdx.x;
  __shared__ unsigned s[4];
  if (t == 0) turn.store(0);
  __syncthreads();
  if (lane() == 0) {
    while (turn.load(cuda::memory_order_acquire) != warp()) {
    }
    s[warp()] = in[warp()] + (warp() ? s[warp() - 1] : 0);
    RIGHT(turn.store(warp() + 1, cuda::memory_order_release));
    FAULT(if (warp() != 2) turn.store(warp() + 1, cuda::memory_order_release));
    out[warp()] = s[warp()];
  }
}

KERNEL_OF(__cluster_dims__(2), cluster_left_before_its_memory_was_read) {
  __shared__ unsigned s[64];
  const auto cluster = cg::this_cluster();
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  cluster.sync();
  const unsigned *peer = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  out[thread()] = peer[63 - t];
  RIGHT(cluster.sync());
}

KERNEL_OF(__cluster_dims__(2), overwritten_between_arrival_and_wait) {
  __shared__ unsigned s[64];
  const auto cluster = cg::this_cluster();
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  cluster.sync();
  const unsigned *peer = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  const unsigned x = peer[63 - t];
  auto token = cluster.barrier_arrive();
  FAULT(s[t] = x + 1);
  cluster.barrier_wait(std::move(token));
  RIGHT(s[t] = x + 1);
  __syncthreads();
  out[thread()] = s[63 - t];
}
