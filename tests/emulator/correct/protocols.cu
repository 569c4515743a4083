// Protocols between CTAs, warps and engines: flags, counters, queues, chains of fences.

#include "driver.cuh"
#include "ordered.cuh"
#include <cuda.h>

namespace {

__device__ void init(void *bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void arrive(void *bar) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ void arrive_expect(void *bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ void expect(void *bar, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ void wait(void *bar, unsigned parity) {
  asm volatile(
      "{ .reg .pred p;\n"
      "AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
      "@!p bra AGAIN; }" ::"r"(shared_address(bar)), "r"(parity)
      : "memory");
}

__device__ void wait_cluster(void *bar, unsigned parity) {
  asm volatile(
      "{ .reg .pred p;\n"
      "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra AGAIN; }" ::"r"(shared_address(bar)), "r"(parity)
      : "memory");
}

__device__ void fetch(void *to, const void *from, unsigned bytes, void *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar))
               : "memory");
}

__device__ void put(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ unsigned rank_of_cta() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ unsigned map_to(const void *p, unsigned rank) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(p)), "r"(rank));
  return address;
}

__device__ unsigned load_remote(unsigned address) {
  unsigned x;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
  return x;
}

__device__ void arrive_remote(unsigned address) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

__device__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void copy_word(void *to, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

}  // namespace

// Chains

KERNEL(chain_through_a_third_cta) {
  unsigned *data = scratch + 64, *first = scratch, *second = scratch + 1;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = in[t];
    __syncthreads();
    if (t == 0) store_release(first, 1);
  } else if (blockIdx.x == 1) {
    if (t == 0) {
      while (load_acquire(first) == 0) {
      }
      store_release(second, 1);
    }
  } else {
    if (t == 0)
      while (load_acquire(second) == 0) {
      }
    __syncthreads();
    out[t] = data[63 - t];
  }
}

KERNEL(relaxed_flag_between_fences) {
  unsigned *data = scratch + 64;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = in[t];
    __threadfence();
    __syncthreads();
    if (t == 0) store_relaxed(scratch, 1);
  } else {
    while (load_relaxed(scratch) == 0) __nanosleep(20);
    __threadfence();
    out[t] = data[63 - t];
  }
}

KERNEL(counter_as_release_sequence) {
  // Every warp adds; who waits for the last value sees what all of them did.
  unsigned *data = scratch + 64;
  const unsigned t = threadIdx.x;
  if (blockIdx.x < 3) {
    data[64 * blockIdx.x + t] = in[64 * blockIdx.x + t];
    __syncwarp();
    if (lane() == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(scratch) : "memory");
  } else {
    while (load_acquire(scratch) != 6) {
    }
    out[t] = data[t] + data[64 + t] + data[128 + t];
  }
}

KERNEL(queue_of_one_producer_and_one_consumer) {
  unsigned *head = scratch, *tail = scratch + 32, *slot = scratch + 64;
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (unsigned i = 0; i < 20; ++i) {
      while (i - load_acquire(tail) == 4) {
      }
      slot[i % 4] = in[i];
      store_release(head, i + 1);
    }
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < 20; ++i) {
      while (load_acquire(head) == i) {
      }
      sum = sum * 5 + slot[i % 4];
      store_release(tail, i + 1);
    }
    out[0] = sum;
  }
}

KERNEL(queue_of_warps_in_shared_memory) {
  __shared__ volatile unsigned slot[4][32], head, tail;
  if (threadIdx.x == 0) head = tail = 0;
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < 9; ++i) {
    if (warp() == 0) {
      while (i - tail == 4) {
      }
      __syncwarp();
      slot[i % 4][lane()] = in[32 * i + lane()];
      __threadfence_block();
      __syncwarp();
      if (lane() == 0) head = i + 1;
    } else {
      while (head == i) {
      }
      __threadfence_block();
      __syncwarp();
      sum = sum * 3 + slot[i % 4][31 - lane()];
      __threadfence_block();
      __syncwarp();
      if (lane() == 0) tail = i + 1;
    }
  }
  if (warp() == 1) out[lane()] = sum;
}

KERNEL(node_published_by_an_exchange) {
  // A list to which CTAs push, which the last of them walks.
  unsigned *top = scratch, *count = scratch + 1, *node = scratch + 64;
  if (threadIdx.x) return;
  const unsigned me = blockIdx.x + 1;
  node[2 * me] = in[blockIdx.x];
  unsigned was = load_relaxed(top);
  while (true) {
    node[2 * me + 1] = was;
    __threadfence();
    const unsigned seen = atomicCAS(top, was, me);
    if (seen == was) break;
    was = seen;
  }
  __threadfence();
  if (atomicInc(count, gridDim.x - 1) == gridDim.x - 1) {
    __threadfence();
    unsigned sum = 0;
    for (unsigned at = load_acquire(top); at; at = node[2 * at + 1]) sum += node[2 * at];
    out[0] = sum;
  }
}

KERNEL(ownership_handed_round_by_compare_and_swap) {
  // A word says whose turn it is; the buffer belongs to that CTA.
  unsigned *turn = scratch, *data = scratch + 64;
  const unsigned t = threadIdx.x;
  for (unsigned round = 0; round < 3; ++round) {
    const unsigned mine = round * gridDim.x + blockIdx.x;
    if (t == 0)
      while (atomicAdd(turn, 0) != mine) {
      }
    __syncthreads();
    __threadfence();
    data[t] = data[t] * 3 + in[64 * blockIdx.x + t];
    __threadfence();
    __syncthreads();
    if (t == 0) atomicExch(turn, mine + 1);
  }
  if (blockIdx.x == gridDim.x - 1) out[t] = data[t];
}

KERNEL(acquire_and_release_of_the_cta) {
  __shared__ unsigned flag, s[32];
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (warp() == 0) {
    s[lane()] = in[lane()];
    __syncwarp();
    if (lane() == 0) asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(shared_address(&flag)) : "memory");
  } else {
    unsigned seen = 0;
    while (!seen) asm volatile("atom.acquire.cta.shared.or.b32 %0, [%1], 0;" : "=r"(seen) : "r"(shared_address(&flag)) : "memory");
    out[lane()] = s[31 - lane()];
  }
}

// Later waves: of 72 CTAs of 32 warps, 64 are resident.

KERNEL(last_cta_of_each_group_reduces_again) {
  // Three groups of 24 CTAs use one workspace after the other, each group behind its forerunner.
  unsigned *ticket = scratch, *ready = scratch + 4, *work = scratch + 64;
  __shared__ unsigned last;
  const unsigned t = threadIdx.x, group = blockIdx.x / 24, at = blockIdx.x % 24;
  if (t == 0) {
    while (load_acquire(ready) != group) {
    }
    work[at] = in[blockIdx.x];
    __threadfence();
    last = atomicAdd(ticket + group, 1) == 23;
  }
  __syncthreads();
  if (last && t < 32) {
    __threadfence();
    unsigned x = t < 24 ? work[t] : 0;
    x = __reduce_add_sync(ALL, x);
    __syncwarp();
    if (t == 0) {
      out[group] = x;
      store_release(ready, group + 1);
    }
  }
}

KERNEL(split_k_workspace_with_a_semaphore) {
  // 24 tiles of three parts each: a part adds to what the one before it has left.
  unsigned *semaphore = scratch, *work = scratch + 64;
  const unsigned t = threadIdx.x, tile = blockIdx.x / 3, part = blockIdx.x % 3;
  if (t == 0)
    while (load_acquire(semaphore + tile) != part) {
    }
  __syncthreads();
  if (t < 32) {
    const unsigned mine = in[32 * blockIdx.x + t];
    const unsigned sum = part ? __ldcg(work + 32 * tile + t) * 3 + mine : mine;
    if (part == 2)
      out[32 * tile + t] = sum;
    else
      __stcg(work + 32 * tile + t, sum);
  }
  __syncthreads();
  if (t == 0) store_release(semaphore + tile, part + 1);
}

KERNEL(scan_in_one_pass_over_waves) {
  unsigned *ticket = scratch, *state = scratch + 64, *sums = scratch + 256, *totals = scratch + 512;
  if (threadIdx.x) return;
  const unsigned tile = atomicAdd(ticket, 1), mine = in[tile];
  sums[tile] = mine;
  __threadfence();
  store_relaxed(state + tile, 1);
  unsigned before = 0;
  for (int at = static_cast<int>(tile) - 1; at >= 0; --at) {
    unsigned seen;
    while ((seen = load_relaxed(state + at)) == 0) {
    }
    __threadfence();
    if (seen == 2) {
      before += totals[at];
      break;
    }
    before += sums[at];
  }
  totals[tile] = before + mine;
  __threadfence();
  store_relaxed(state + tile, 2);
  out[tile] = before + mine;
}

// Copies by cp.async

KERNEL(a_depth_of_copies_for_each_warp) {
  __shared__ unsigned s[2][8][32];
  unsigned(*mine)[32] = s[warp()];
  for (unsigned i = 0; i < 8; ++i) {
    copy_word(&mine[i][lane()], in + 32 * (8 * warp() + i) + lane());
    commit();
  }
  unsigned sum = 0;
  if (warp() == 0) {
    asm volatile("cp.async.wait_group 6;" ::: "memory");
    __syncwarp();
    sum = mine[0][31 - lane()] + mine[1][31 - lane()];
  } else {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    for (unsigned i = 0; i < 7; ++i) sum += mine[i][31 - lane()];
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  out[threadIdx.x] = sum * 3 + mine[7][31 - lane()];
}

KERNEL(groups_of_copies_by_some_lanes) {
  __shared__ unsigned s[3][32];
  if (lane() < 16) {
    copy_word(&s[0][lane()], in + lane());
    copy_word(&s[0][lane() + 16], in + lane() + 16);
  }
  commit();
  if (lane() % 2) {
    copy_word(&s[1][lane()], in + 32 + lane());
    copy_word(&s[1][lane() - 1], in + 31 + lane());
  }
  commit();
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncwarp();
  const unsigned first = s[0][31 - lane()];
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncwarp();
  out[lane()] = first + 3 * s[1][31 - lane()];
}

KERNEL(copies_that_arrive_and_are_counted) {
  // cp.async.mbarrier.arrive without .noinc counts itself: only the threads' own arrivals are expected.
  __shared__ unsigned long long bar;
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  __syncthreads();
  copy_word(s + t, in + t);
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");
  arrive(&bar);
  wait(&bar, 0);
  out[t] = s[63 - t];
}

// Named barriers

KERNEL(ring_by_named_barriers) {
  // Warp 0 fills three slots, warps 1 and 2 empty them: barriers 1 to 3 are full, 4 to 6 empty.
  __shared__ unsigned s[3][32];
  if (warp() == 0) {
    for (unsigned i = 0; i < 8; ++i) {
      if (i >= 3) asm volatile("bar.sync %0, 96;" ::"r"(4 + i % 3) : "memory");
      s[i % 3][lane()] = in[32 * i + lane()];
      __threadfence_block();
      asm volatile("bar.arrive %0, 96;" ::"r"(1 + i % 3) : "memory");
    }
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < 8; ++i) {
      asm volatile("bar.sync %0, 96;" ::"r"(1 + i % 3) : "memory");
      sum = sum * 3 + s[i % 3][(lane() + warp()) % 32];
      if (i < 5) asm volatile("bar.arrive %0, 96;" ::"r"(4 + i % 3) : "memory");
    }
    out[threadIdx.x - 32] = sum;
  }
}

// Mbarriers and bulk copies

KERNEL(bytes_expected_after_the_copies) {
  __shared__ alignas(16) unsigned s[128];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    init(&bar, 3);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    fetch(s, in, 128, &bar);
    fetch(s + 32, in + 32, 256, &bar);
    fetch(s + 96, in + 96, 128, &bar);
    expect(&bar, 128);
    arrive_expect(&bar, 64);
  } else if (threadIdx.x == 32) {
    expect(&bar, 256);
    arrive_expect(&bar, 64);
    arrive(&bar);
  }
  wait(&bar, 0);
  out[threadIdx.x] = s[127 - threadIdx.x] + s[threadIdx.x];
}

KERNEL(one_waits_for_the_copy_and_a_barrier_tells_the_others) {
  __shared__ alignas(16) unsigned s[2][64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    arrive_expect(&bar, 256);
    fetch(s[0], in, 256, &bar);
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < 5; ++i) {
    if (t == 0) wait(&bar, i % 2);
    __syncthreads();
    if (t == 0 && i < 4) {
      arrive_expect(&bar, 256);
      fetch(s[(i + 1) % 2], in + 64 * (i + 1), 256, &bar);
    }
    sum = sum * 3 + s[i % 2][63 - t];
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(stage_stored_when_a_barrier_says_that_it_is_full) {
  // Each warp fences what it wrote and arrives; a third warp stores it in bulk, two stages in turn.
  __shared__ alignas(16) unsigned s[2][64];
  __shared__ unsigned long long full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full + i, 64);
      init(empty + i, 1);
    }
  }
  __syncthreads();
  if (warp() < 2) {
    for (unsigned i = 0; i < 6; ++i) {
      wait(empty + i % 2, i / 2 % 2 ^ 1);
      s[i % 2][threadIdx.x] = in[64 * i + threadIdx.x] + i;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      arrive(full + i % 2);
    }
  } else if (lane() == 0) {
    for (unsigned i = 0; i < 6; ++i) {
      wait(full + i % 2, i / 2 % 2);
      put(out + 64 * i, s[i % 2], 256);
      if (i) {
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        arrive(empty + (i - 1) % 2);
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

KERNEL(bulk_store_read_back_by_the_cta) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  fence_async();
  __syncthreads();
  if (t == 0) {
    put(scratch, s, 256);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncthreads();
  out[t] = scratch[63 - t];
}

KERNEL(bulk_store_announced_to_another_cta) {
  // CTA 0 stores in bulk, waits and releases a flag; CTA 1 reads with loads, CTA 2 by a bulk copy.
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long bar;
  unsigned *flag = scratch, *data = scratch + 64;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    s[t] = in[t];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      put(data, s, 256);
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      fence_async();
      store_release(flag, 1);
    }
    return;
  }
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    while (load_acquire(flag) == 0) {
    }
  }
  __syncthreads();
  if (blockIdx.x == 1) {
    out[t] = data[63 - t];
  } else {
    if (t == 0) {
      fence_async();
      arrive_expect(&bar, 256);
      fetch(s, data, 256, &bar);
    }
    wait(&bar, 0);
    out[64 + t] = s[63 - t] + 1;
  }
}

KERNEL(written_by_threads_and_copied_by_another_cta) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long bar;
  unsigned *flag = scratch, *data = scratch + 64;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = in[t] * 3;
    fence_async();
    __threadfence();
    __syncthreads();
    if (t == 0) store_release(flag, 1);
    return;
  }
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    while (load_acquire(flag) == 0) {
    }
    fence_async();
    arrive_expect(&bar, 256);
    fetch(s, data, 256, &bar);
  }
  __syncthreads();
  wait(&bar, 0);
  out[t] = s[63 - t];
}

KERNEL(arrivals_drop_out_of_a_ring) {
  // Warp w works w + 1 rounds, then drops out of both barriers' counts.
  __shared__ unsigned s[4];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) init(&bar, 4);
  if (threadIdx.x < 4) s[threadIdx.x] = 0;
  __syncthreads();
  if (lane() == 0) {
    for (unsigned i = 0; i <= warp(); ++i) {
      atomicAdd(s + i, in[4 * i + warp()]);
      if (i == warp()) {
        asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" ::"r"(shared_address(&bar)) : "memory");
      } else {
        arrive(&bar);
        wait(&bar, i % 2);
        atomicAdd(out + i, warp() == 3 ? s[i] : 0);
      }
    }
  }
}

// Clusters

KERNEL_OF(__cluster_dims__(4), work_between_arriving_and_waiting) {
  __shared__ unsigned s;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  const unsigned sum = __reduce_add_sync(ALL, in[64 * rank + t] % 1000);
  if (t == 0) s = 0;
  __syncthreads();
  if (lane() == 0) atomicAdd(&s, sum);
  __syncwarp();
  cluster_arrive();
  unsigned mine = in[t] % 7;
  for (unsigned i = 0; i < 5; ++i) mine = mine * 3 + 1;
  cluster_wait();
  unsigned total = mine;
  for (unsigned i = 0; i < 4; ++i) total += load_remote(map_to(&s, i));
  cluster_arrive();
  out[64 * rank + t] = total;
  cluster_wait();
}

KERNEL_OF(__cluster_dims__(4), multicast_to_every_second_cta) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    arrive_expect(&bar, 256);
  }
  cluster_arrive();
  cluster_wait();
  if (t == 0 && rank % 3 == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
            shared_address(s)), "l"(in + 64 * rank), "r"(shared_address(&bar)), "h"(static_cast<unsigned short>(rank ? 10 : 5))
        : "memory");
  wait(&bar, 0);
  out[64 * rank + t] = s[63 - t];
  cluster_arrive();
  cluster_wait();
}

KERNEL_OF(__cluster_dims__(2), stages_freed_in_every_cta_of_a_multicast) {
  // Rank 0 copies for both; a stage is free when the consumers of both have said so at its barrier.
  __shared__ alignas(128) unsigned s[2][64];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full + i, 1);
      init(empty + i, 4);
    }
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (warp() == 2) {
    if (lane() == 0)
      for (unsigned i = 0; i < 7; ++i) {
        if (rank == 0) wait_cluster(empty + i % 2, i / 2 % 2 ^ 1);
        arrive_expect(full + i % 2, 256);
        if (rank == 0)
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], 3;" ::"r"(
                  shared_address(s[i % 2])), "l"(in + 64 * i), "r"(shared_address(full + i % 2))
              : "memory");
        else
          wait(full + i % 2, i / 2 % 2);
      }
    __syncwarp();
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < 7; ++i) {
      wait(full + i % 2, i / 2 % 2);
      sum = sum * 3 + s[i % 2][63 - t];
      __syncwarp();
      if (lane() == 0) arrive_remote(map_to(empty + i % 2, 0));
    }
    out[64 * rank + t] = sum;
  }
  cluster_arrive();
  cluster_wait();
}

KERNEL_OF(__cluster_dims__(4), values_passed_round_a_ring_of_ctas) {
  // st.async to the right neighbour in five rounds: two slots, and a credit from who reads them.
  __shared__ unsigned s[2][64];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x, rank = rank_of_cta(), right = (rank + 1) % 4, left = (rank + 3) % 4;
  if (t == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full + i, 1);
      init(empty + i, 64);
    }
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  unsigned value = in[64 * rank + t];
  for (unsigned i = 0; i < 5; ++i) {
    wait_cluster(empty + i % 2, i / 2 % 2 ^ 1);
    if (t == 0) arrive_expect(full + i % 2, 256);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(map_to(&s[i % 2][63 - t], right)),
                 "r"(value), "r"(map_to(full + i % 2, right))
                 : "memory");
    wait_cluster(full + i % 2, i / 2 % 2);
    value = s[i % 2][t] * 3 + rank;
    arrive_remote(map_to(empty + i % 2, left));
  }
  out[64 * rank + t] = value;
  cluster_arrive();
  cluster_wait();
}

// Lanes

KERNEL(quarters_of_a_warp_exchange) {
  __shared__ unsigned s[64];
  const unsigned quarter = 0xffu << lane() / 8 * 8;
  unsigned x = in[threadIdx.x];
  for (unsigned i = 0; i < lane() / 8 + 1; ++i) {
    s[threadIdx.x] = x;
    __syncwarp(quarter);
    x = x * 3 + s[threadIdx.x ^ 7];
    __syncwarp(quarter);
  }
  out[threadIdx.x] = x;
}

KERNEL(peers_found_in_a_loop) {
  // One atomic for each of the keys of a warp, by its leader.
  unsigned left = in[threadIdx.x] % 6 + 1;
  const unsigned key = in[threadIdx.x] % 5;
  while (left) {
    const unsigned here = __activemask(), peers = __match_any_sync(here, key);
    if (lane() == __ffs(peers) - 1) atomicAdd(out + key, __popc(peers));
    __syncwarp(here);
    --left;
  }
}

KERNEL(lanes_ready_one_after_the_other) {
  // As tree codes do: whoever is not ready looks again in the next turn, at one of three places.
  volatile unsigned *const sums = scratch, *const x = scratch + 64;
  const unsigned l = threadIdx.x;
  x[l] = in[l];
  __syncwarp();
  unsigned looked = 0;
  for (bool done = false; !done;) {
    if (l == 31 || sums[l + 1]) {
      unsigned sum = 1;
      for (unsigned i = 0; i < 32; ++i) sum += x[(l + i) % 32] % 256 * i;
      sums[l] = sum + (l < 31 ? sums[l + 1] : 0);
      done = true;
    } else if (l % 3 == 0) {
      looked += sums[l + 1] > 2;
    } else if (l % 3 == 1) {
      looked += sums[l + 1] * 3 > 2;
    }
  }
  out[l] = sums[l] + (looked > ALL / 2);
}
