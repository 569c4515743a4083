// libcu++ and CUB.

#include "driver.cuh"
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

KERNEL(cub_reductions) {
  using Raking = cub::BlockReduce<unsigned, 64, cub::BLOCK_REDUCE_RAKING>;
  using Warps = cub::BlockReduce<unsigned, 64, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ union { Raking::TempStorage a; Warps::TempStorage b; } s;
  const unsigned first = Raking(s.a).Sum(in[threadIdx.x]);
  __syncthreads();
  const unsigned second = Warps(s.b).Reduce(in[threadIdx.x], cuda::maximum<>{}, 50);
  if (threadIdx.x == 0) {
    out[0] = first;
    out[1] = second;
  }
}

KERNEL(cub_scans) {
  using Scan = cub::BlockScan<unsigned, 64, cub::BLOCK_SCAN_RAKING>;
  __shared__ Scan::TempStorage s;
  unsigned items[3], total;
  for (int i = 0; i < 3; ++i) items[i] = in[3 * threadIdx.x + i] % 100;
  Scan(s).ExclusiveSum(items, items, total);
  for (int i = 0; i < 3; ++i) out[3 * threadIdx.x + i] = items[i] + total;
}

KERNEL(cub_radix_sort_of_pairs) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 4, unsigned>;
  __shared__ Sort::TempStorage s;
  unsigned keys[4], values[4];
  for (int i = 0; i < 4; ++i) {
    keys[i] = in[4 * threadIdx.x + i];
    values[i] = 4 * threadIdx.x + i;
  }
  Sort(s).SortBlockedToStriped(keys, values);
  for (int i = 0; i < 4; ++i) out[64 * i + threadIdx.x] = values[i];
}

KERNEL(cub_load_and_store_in_every_arrangement) {
  using Load = cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
  using Vectors = cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_VECTORIZE>;
  __shared__ union { Load::TempStorage load; Store::TempStorage store; Vectors::TempStorage v; } s;
  unsigned items[4];
  Load(s.load).Load(in, items, 250, 1u);
  unsigned again[4];
  for (int i = 0; i < 4; ++i) again[i] = items[i] += threadIdx.x;
  __syncthreads();
  Store(s.store).Store(out, items, 250);
  Vectors(s.v).Store(out + 256, again);
}

KERNEL(cub_histograms) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 32, cub::BLOCK_HISTO_SORT>;
  __shared__ Histogram::TempStorage s;
  __shared__ unsigned bins[32];
  unsigned char items[4];
  for (int i = 0; i < 4; ++i) items[i] = in[4 * threadIdx.x + i] % 32;
  Histogram(s).Histogram(items, bins);
  __syncthreads();
  if (threadIdx.x < 32) out[threadIdx.x] = bins[threadIdx.x];
}

KERNEL(cub_warp_scans_and_sorts) {
  using Scan = cub::WarpScan<unsigned, 16>;
  using Reduce = cub::WarpReduce<unsigned>;
  using Sort = cub::WarpMergeSort<unsigned, 2, 32>;
  __shared__ union { Scan::TempStorage a; } scans[4];
  __shared__ Reduce::TempStorage reductions[2];
  __shared__ Sort::TempStorage sorts[2];
  unsigned x = in[threadIdx.x] % 100, upto;
  Scan(scans[threadIdx.x / 16].a).InclusiveSum(x, upto);
  const unsigned heads = Reduce(reductions[warp()]).HeadSegmentedSum(x, lane() % 10 == 0);
  unsigned keys[2] = {in[2 * threadIdx.x], in[2 * threadIdx.x + 1]};
  Sort(sorts[warp()]).Sort(keys, cuda::std::less<unsigned>{});
  out[threadIdx.x] = upto;
  out[64 + threadIdx.x] = lane() % 10 == 0 ? heads : 0;
  out[128 + 2 * threadIdx.x] = keys[0];
  out[128 + 2 * threadIdx.x + 1] = keys[1];
}

KERNEL(cub_discontinuities_and_exchange) {
  using Edges = cub::BlockDiscontinuity<unsigned, 64>;
  using Exchange = cub::BlockExchange<unsigned, 64, 4>;
  __shared__ union { Edges::TempStorage edges; Exchange::TempStorage exchange; } s;
  unsigned items[4];
  int flags[4];
  for (int i = 0; i < 4; ++i) items[i] = in[64 * i + threadIdx.x] % 2;
  Exchange(s.exchange).StripedToBlocked(items);
  __syncthreads();
  Edges(s.edges).FlagHeads(flags, items, cuda::std::not_equal_to<unsigned>{});
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = flags[i];
}

KERNEL(cub_merge_sort) {
  using Sort = cub::BlockMergeSort<unsigned, 64, 3>;
  __shared__ Sort::TempStorage s;
  unsigned keys[3];
  for (int i = 0; i < 3; ++i) keys[i] = in[3 * threadIdx.x + i];
  Sort(s).Sort(keys, cuda::std::greater<unsigned>{}, 180, 0u);
  for (int i = 0; i < 3; ++i) out[3 * threadIdx.x + i] = 3 * threadIdx.x + i < 180 ? keys[i] : 0;
}

KERNEL(barrier_with_a_completion_function) {
  __shared__ unsigned s[64];
  __shared__ unsigned sum;
  auto add = [] {
    unsigned all = 0;
    for (unsigned i = 0; i < 64; ++i) all += s[i];
    sum = all;
  };
  using Barrier = cuda::barrier<cuda::thread_scope_block, decltype(add)>;
  __shared__ alignas(Barrier) unsigned char storage[sizeof(Barrier)];
  auto bar = reinterpret_cast<Barrier *>(storage);
  if (threadIdx.x == 0) new (bar) Barrier(64, add);
  __syncthreads();
  s[threadIdx.x] = in[threadIdx.x];
  bar->arrive_and_wait();
  out[threadIdx.x] = sum;
}

KERNEL(barrier_whose_threads_drop_out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ unsigned count;
  if (threadIdx.x == 0) {
    init(&bar, 64);
    count = 0;
  }
  __syncthreads();
  for (unsigned i = 0; i < 6; ++i) {
    if (threadIdx.x % 7 == i) {
      bar.arrive_and_drop();
      return;
    }
    atomicAdd(&count, 1);
    bar.arrive_and_wait();
  }
  out[threadIdx.x] = count;
}

KERNEL(barrier_waited_for_by_parity_with_a_time_limit) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ unsigned s[64];
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  for (unsigned i = 0; i < 3; ++i) {
    s[threadIdx.x] = in[threadIdx.x] + i;
    (void)bar.arrive();
    while (!bar.try_wait_parity_for(i % 2, cuda::std::chrono::nanoseconds(50))) {
    }
    out[64 * i + threadIdx.x] = s[63 - threadIdx.x];
    bar.arrive_and_wait();
    bar.arrive_and_wait();
  }
}

KERNEL(barrier_of_the_device) {
  using Barrier = cuda::barrier<cuda::thread_scope_device>;
  auto bar = reinterpret_cast<Barrier *>(scratch + 16);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(scratch[0]);
  if (thread() == 0) {
    init(bar, gridDim.x * blockDim.x);
    ready.store(1, cuda::memory_order_release);
  }
  while (ready.load(cuda::memory_order_acquire) == 0) {
  }
  scratch[64 + thread()] = in[thread()];
  bar->arrive_and_wait();
  out[thread()] = scratch[64 + gridDim.x * blockDim.x - 1 - thread()];
}

KERNEL(atomic_ref_in_every_order) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> a(scratch[0]), b(scratch[1]);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_block> c(*reinterpret_cast<unsigned long long *>(scratch + 2));
  a.fetch_add(1, cuda::memory_order_relaxed);
  b.fetch_max(in[thread()], cuda::memory_order_acq_rel);
  if (blockIdx.x == 0) c.fetch_xor(1ull << threadIdx.x, cuda::memory_order_seq_cst);
  unsigned expected = 0;
  const bool first = cuda::atomic_ref<unsigned, cuda::thread_scope_system>(scratch[4]).compare_exchange_strong(expected, 5);
  if (first) cuda::atomic_ref<unsigned>(scratch[5]).fetch_add(1);
  while (a.load() < gridDim.x * blockDim.x) {
  }
  out[thread()] = b.load(cuda::memory_order_acquire);
}

KERNEL(waiting_at_an_atomic) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> turn(scratch[0]);
  if (threadIdx.x == 0) {
    for (unsigned seen; (seen = turn.load(cuda::memory_order_acquire)) != blockIdx.x;) turn.wait(seen);
    scratch[1] = scratch[1] * 2 + in[blockIdx.x] % 2;
    if (blockIdx.x == gridDim.x - 1) out[0] = scratch[1];
    turn.store(blockIdx.x + 1, cuda::memory_order_release);
    turn.notify_all();
  }
}

KERNEL(semaphore_of_two) {
  using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 2>;
  __shared__ alignas(Semaphore) unsigned char storage[sizeof(Semaphore)];
  __shared__ unsigned inside, most, done;
  auto &places = *reinterpret_cast<Semaphore *>(storage);
  if (threadIdx.x == 0) {
    new (&places) Semaphore(2);
    inside = most = done = 0;
  }
  __syncthreads();
  if (lane() == 0) {
    places.acquire();
    atomicMax(&most, atomicAdd(&inside, 1) + 1);
    atomicAdd(&done, 1);
    atomicSub(&inside, 1);
    places.release();
  }
  __syncthreads();
  out[threadIdx.x] = done + (most <= 2);
}

KERNEL(latch_before_the_others_go_on) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) unsigned char storage[sizeof(Latch)];
  __shared__ unsigned s[32];
  auto &latch = *reinterpret_cast<Latch *>(storage);
  if (threadIdx.x == 0) new (&latch) cuda::latch<cuda::thread_scope_block>(32);
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = in[threadIdx.x];
    latch.count_down();
    out[threadIdx.x] = 1;
  } else {
    latch.wait();
    out[threadIdx.x] = s[63 - threadIdx.x];
  }
}

KERNEL(pipeline_of_producers_and_consumers) {
  __shared__ alignas(16) unsigned s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state, 64);
  const unsigned t = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (unsigned i = 0; i < 5; ++i) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[i % 2][t], in + 64 * i + t, sizeof(unsigned), pipe);
      pipe.producer_commit();
    }
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < 5; ++i) {
      pipe.consumer_wait();
      sum = sum * 3 + s[i % 2][63 - t];
      pipe.consumer_release();
    }
    out[t] = sum;
  }
}

KERNEL(pipeline_of_the_whole_block) {
  __shared__ alignas(16) unsigned s[3][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  unsigned sum = 0;
  for (unsigned i = 0, ahead = 0; i < 6; ++i) {
    for (; ahead < 6 && ahead < i + 3; ++ahead) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[ahead % 3], in + 64 * ahead, 256, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum = sum * 5 + s[i % 3][63 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

KERNEL(memcpy_async_at_a_barrier) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  const auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, 64);
  block.sync();
  cuda::memcpy_async(block, s, in, cuda::aligned_size_t<16>(256), bar);
  bar.arrive_and_wait();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
