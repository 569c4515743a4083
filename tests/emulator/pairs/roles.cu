// Warps with roles: producers and consumers of rings that TMA fills, stores that leave while the next tile is made.

#include "faults.cuh"
#include "hopper.cuh"
#include <cuda.h>

namespace {

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void begin(void *bar, unsigned count) {
  init(bar, count);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void arrive_at(unsigned bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ void wait_of_cluster(void *bar, unsigned parity) {
  asm volatile(
      "{ .reg .pred p;\n"
      "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1, 1000;\n"
      "@!p bra AGAIN; }" ::"r"(shared_address(bar)), "r"(parity)
      : "memory");
}

__device__ void store(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
               "r"(bytes)
               : "memory");
}

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N>
__device__ void wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ void wait_written() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

template <int N>
__device__ void bar_sync(unsigned id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(N) : "memory");
}
template <int N>
__device__ void bar_arrive(unsigned id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(N) : "memory");
}

}  // namespace

// Three tiles of five pieces each through a ring of two stages: phases go on from tile to tile.
KERNEL(phases_begun_anew_with_each_tile) {
  __shared__ alignas(128) unsigned s[2][32];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x;
  if (t == 0)
    for (unsigned i = 0; i < 2; ++i) begin(full + i, 1), begin(empty + i, 32);
  __syncthreads();
  unsigned sum = 0, at = 0;
  for (unsigned tile = 0; tile < 3; ++tile) {
    FAULT(at = 0);
    for (unsigned k = 0; k < 5; ++k, ++at) {
      const unsigned stage = at % 2, phase = at / 2 % 2, piece = tile * 5 + k;
      if (t == 32) {
        wait(empty + stage, phase ^ 1);
        expect(full + stage, 128);
        fetch(s[stage], in + 32 * piece, 128, full + stage);
      } else if (t < 32) {
        wait(full + stage, phase);
        sum = sum * 3 + s[stage][31 - t];
        arrive(empty + stage);
      }
    }
  }
  if (t < 32) out[t] = sum;
}

KERNEL(stage_released_by_one_of_two_consumers) {
  __shared__ alignas(128) unsigned s[2][64];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x;
  if (t == 0)
    for (unsigned i = 0; i < 2; ++i) begin(full + i, 1), begin(empty + i, RIGHT(2) FAULT(1));
  __syncthreads();
  if (warp() == 2) {
    if (lane() == 0)
      for (unsigned i = 0; i < 6; ++i) {
        wait(empty + i % 2, i / 2 % 2 ^ 1);
        expect(full + i % 2, 256);
        fetch(s[i % 2], in + 64 * i, 256, full + i % 2);
      }
    return;
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < 6; ++i) {
    wait(full + i % 2, i / 2 % 2);
    sum = sum * 3 + s[i % 2][63 - t];
    __syncwarp();
    RIGHT(if (lane() == 0) arrive(empty + i % 2));
    FAULT(if (t == 0) arrive(empty + i % 2));
  }
  out[t] = sum;
}

KERNEL(next_stage_released_instead_of_this_one) {
  __shared__ alignas(128) unsigned s[3][32];
  __shared__ unsigned long long full[3], empty[3];
  const unsigned t = threadIdx.x;
  if (t == 0)
    for (unsigned i = 0; i < 3; ++i) begin(full + i, 1), begin(empty + i, 32);
  __syncthreads();
  if (t == 32)
    for (unsigned i = 0; i < 7; ++i) {
      wait(empty + i % 3, i / 3 % 2 ^ 1);
      expect(full + i % 3, 128);
      fetch(s[i % 3], in + 32 * i, 128, full + i % 3);
    }
  if (t >= 32) return;
  unsigned sum = 0;
  for (unsigned i = 0; i < 7; ++i) {
    wait(full + i % 3, i / 3 % 2);
    FAULT(arrive(empty + (i + 1) % 3));
    sum = sum * 3 + s[i % 3][31 - t];
    RIGHT(arrive(empty + i % 3));
  }
  out[t] = sum;
}

KERNEL(arrival_before_the_bytes_are_expected) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) begin(&full, 1);
  __syncthreads();
  if (t == 0) {
    FAULT(arrive(&full));
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(shared_address(&full)) : "memory");
    fetch(s, in, 256, &full);
    RIGHT(arrive(&full));
  }
  wait(&full, 0);
  out[t] = s[63 - t];
}

KERNEL(two_staging_buffers_and_a_wait_for_two) {
  __shared__ alignas(128) unsigned s[2][64];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 5; ++i) {
    RIGHT(if (t == 0) wait_read<1>());
    FAULT(if (t == 0) wait_read<2>());
    __syncthreads();
    s[i % 2][t] = in[64 * i + t] * 5 + i;
    fence_async();
    __syncthreads();
    if (t == 0) {
      store(out + 64 * i, s[i % 2], 256);
      commit();
    }
  }
  if (t == 0) wait_read<0>();
}

KERNEL(store_waited_for_by_another_lane) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t] + 7;
  fence_async();
  __syncthreads();
  if (t == 0) {
    store(out, s, 256);
    commit();
  }
  RIGHT(if (t == 0) wait_read<0>());
  FAULT(if (t == 1) wait_read<0>());
  __syncthreads();
  s[t] = 0;
  __syncthreads();
  out[64 + t] = s[63 - t] + 1;
}

KERNEL(reduction_announced_before_it_was_written) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  fence_async();
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(scratch),
                 "r"(shared_address(s))
                 : "memory");
    commit();
    RIGHT(wait_written());
    FAULT(wait_read<0>());
    asm volatile("fence.proxy.async;" ::: "memory");
    __threadfence();
    last = atomicAdd(scratch + 1000, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[t] = scratch[t];
}

KERNEL_OF(__cluster_dims__(2), sent_to_a_peer_without_a_proxy_fence) {
  __shared__ alignas(128) unsigned s[64], inbox[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, peer = rank_of_cta() ^ 1;
  if (t == 0) {
    begin(&full, 1);
    expect(&full, 256);
  }
  s[t] = in[thread()] * 3;
  RIGHT(fence_async());
  meet_cluster();
  if (t == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
                     map_to(inbox, peer)),
                 "r"(shared_address(s)), "r"(map_to(&full, peer))
                 : "memory");
  wait_of_cluster(&full, 0);
  out[thread()] = inbox[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), outbox_filled_again_while_it_is_sent) {
  __shared__ alignas(128) unsigned s[64], inbox[2][64];
  __shared__ unsigned long long full[2], sent;
  const unsigned t = threadIdx.x, peer = rank_of_cta() ^ 1;
  if (t == 0) {
    begin(full, 1), begin(full + 1, 1), begin(&sent, 1);
    expect(full, 256), expect(full + 1, 256);
  }
  meet_cluster();
  for (unsigned i = 0; i < 2; ++i) {
    s[t] = in[64 * i + t] + rank_of_cta();
    fence_async();
    __syncthreads();
    if (t == 0)
      asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
                       map_to(inbox[i], peer)),
                   "r"(shared_address(s)), "r"(map_to(full + i, peer))
                   : "memory");
    wait_of_cluster(full + i, 0);
    // What came in says nothing of what went out: the peer says that it has it.
    RIGHT(__syncthreads());
    RIGHT(if (t == 0) arrive_at(map_to(&sent, peer)));
    RIGHT(wait_of_cluster(&sent, i));
  }
  out[thread()] = inbox[0][63 - t] ^ inbox[1][t];
  meet_cluster();
}

KERNEL(named_barrier_with_another_count) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 32) {
    s[t] = in[t];
    RIGHT(bar_arrive<64>(3));
    FAULT(bar_arrive<96>(3));
  } else {
    bar_sync<64>(3);
    out[t - 32] = s[63 - t];
  }
}

KERNEL(ring_of_named_barriers_without_empty) {
  __shared__ unsigned s[2][32];
  const unsigned t = threadIdx.x, l = lane();
  if (t < 32) {
    for (unsigned i = 0; i < 6; ++i) {
      RIGHT(if (i >= 2) bar_sync<64>(3 + i % 2));
      FAULT(if (i >= 2 && i % 2 == 0) bar_sync<64>(3));
      s[i % 2][l] = in[32 * i + l];
      bar_arrive<64>(1 + i % 2);
    }
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < 6; ++i) {
      bar_sync<64>(1 + i % 2);
      sum = sum * 3 + s[i % 2][31 - l];
      RIGHT(if (i < 4) bar_arrive<64>(3 + i % 2));
      FAULT(if (i < 4 && i % 2 == 0) bar_arrive<64>(3));
    }
    out[l] = sum;
  }
}

KERNEL(fence_before_the_stores_instead_of_after) {
  __shared__ alignas(128) unsigned s[32];
  const unsigned t = threadIdx.x;
  FAULT(fence_async());
  s[t] = in[t] * 9;
  RIGHT(fence_async());
  __syncwarp();
  if (t == 0) {
    store(out, s, 128);
    commit();
    wait_read<0>();
  }
}

KERNEL(tested_once_instead_of_in_a_loop) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    begin(&full, 1);
    expect(&full, 256);
    fetch(s, in, 256, &full);
  }
  __syncthreads();
  unsigned done = 0;
  RIGHT(while (!done))
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(shared_address(&full))
               : "memory");
  out[t] = s[63 - t] + done;
}

KERNEL(state_of_an_earlier_phase_waited_for) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  if (t == 0) begin(&bar, 64);
  __syncthreads();
  unsigned long long state, first = 0;
  unsigned sum = 0;
  for (unsigned i = 0; i < 3; ++i) {
    s[t] = in[64 * i + t];
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(&bar)) : "memory");
    if (i == 0) first = state;
    FAULT(state = first);
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(shared_address(&bar)), "l"(state)
                   : "memory");
    sum = sum * 3 + s[63 - t];
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL_OF(__cluster_dims__(2), halves_sent_to_a_barrier_that_may_not_be_there) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) {
    begin(&full, 1);
    expect(&full, 256);
  }
  RIGHT(meet_cluster());
  FAULT(__syncthreads());
  if (t == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(
            shared_address(s + 32 * rank)),
        "l"(in + 32 * rank), "r"(shared_address(&full)), "h"(static_cast<unsigned short>(3))
        : "memory");
  wait(&full, 0);
  out[thread()] = s[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(4), freed_in_three_of_four_blocks) {
  __shared__ alignas(128) unsigned s[32];
  __shared__ unsigned long long full, empty;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) begin(&full, 1), begin(&empty, RIGHT(4) FAULT(3));
  meet_cluster();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (t == 32) {
      expect(&full, 128);
      if (rank == 0) {
        wait_of_cluster(&empty, i % 2 ^ 1);
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(
                shared_address(s)),
            "l"(in + 32 * i), "r"(shared_address(&full)), "h"(static_cast<unsigned short>(15))
            : "memory");
      }
      wait(&full, i % 2);
    }
    if (t < 32) {
      wait(&full, i % 2);
      sum = sum * 3 + s[31 - t];
      __syncwarp();
      RIGHT(if (t == 0) arrive_at(map_to(&empty, 0)));
      FAULT(if (t == 0 && rank != 3) arrive_at(map_to(&empty, 0)));
    }
  }
  if (t < 32) out[32 * rank + t] = sum;
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), bytes_expected_where_nothing_comes) {
  __shared__ alignas(16) unsigned inbox[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) begin(&full, 1);
  meet_cluster();
  RIGHT(if (t == 0 && rank == 1) expect(&full, 256));
  FAULT(if (t == 0 && rank == 0) expect(&full, 256));
  if (rank == 0)
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                     map_to(inbox + t, 1)),
                 "r"(in[t]), "r"(map_to(&full, 1))
                 : "memory");
  if (rank == 1) {
    wait(&full, 0);
    out[t] = inbox[63 - t];
  }
  meet_cluster();
}

#define TENSOR_KERNEL(name)                                                                          \
  extern "C" __global__ void name(unsigned *out, const unsigned *in, unsigned *scratch,              \
                                  const __grid_constant__ CUtensorMap map)

TENSOR_KERNEL(box_with_its_coordinates_exchanged) {
  __shared__ alignas(128) unsigned s[8][32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    begin(&full, 1);
    expect(&full, 1024);
    RIGHT(fetch_box(s, &map, 8, 4, &full));
    FAULT(fetch_box(s, &map, 4, 8, &full));
  }
  __syncthreads();
  wait(&full, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[i / 32][i % 32];
}

TENSOR_KERNEL(boxes_of_a_tile_of_which_one_is_forgotten) {
  __shared__ alignas(128) unsigned s[2][8][32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    begin(&full, 1);
    expect(&full, RIGHT(2048) FAULT(1024));
    fetch_box(s[0], &map, 0, 0, &full);
    RIGHT(fetch_box(s[1], &map, 0, 4, &full));
  }
  __syncthreads();
  wait(&full, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[0][i / 32][i % 32] + s[1][i / 32][i % 32];
}
