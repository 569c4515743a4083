// Reported faults of code for sm_90, rebuilt as small kernels.

#include "faults.cuh"
#include "hopper.cuh"
#include <cuda.h>

namespace {

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void store(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

__device__ void wait_until_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// One barrier of one arrival, ready for all threads.
__device__ void begin(void *bar) {
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
}

}  // namespace

// Copies out.

KERNEL(epilogue_without_a_proxy_fence) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t] + 1;
  RIGHT(fence_async());
  __syncthreads();
  if (t == 0) {
    store(out, s, 256);
    wait_until_read();
  }
}

KERNEL(fence_only_inside_the_loop) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x, trips = scratch[0];  // none: an empty sequence
  s[t] = in[t];
  for (unsigned i = 0; i < trips; ++i) {
    s[t] += in[64 * i + t];
    fence_async();
  }
  RIGHT(fence_async());
  __syncthreads();
  if (t == 0) {
    store(out, s, 256);
    wait_until_read();
  }
}

KERNEL(source_reused_before_it_was_read) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 3; ++i) {
    s[t] = in[64 * i + t];
    fence_async();
    __syncthreads();
    if (t == 0) {
      store(out + 64 * i, s, 256);
      RIGHT(wait_until_read());
    }
    __syncthreads();
  }
  FAULT(if (t == 0) wait_until_read());
}

KERNEL(reduction_source_reused) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t] % 100;
  fence_async();
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(out),
                 "r"(shared_address(s))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    RIGHT(wait_until_read());
  }
  __syncthreads();
  s[63 - t] = t;
  __syncthreads();
  out[64 + t] = s[t];
  FAULT(if (t == 0) wait_until_read());
}

KERNEL(result_read_before_it_was_stored) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  fence_async();
  __syncthreads();
  if (t == 0) {
    store(scratch, s, 256);
    RIGHT(wait_until_stored());
    FAULT(wait_until_read());
  }
  __syncthreads();
  out[t] = scratch[63 - t];
}

// Copies in.

KERNEL(barrier_without_an_init_fence) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    init(&full, 1);
    RIGHT(fence_init());
    expect(&full, 256);
    fetch(s, in, 256, &full);
  }
  __syncthreads();
  wait(&full, 0);
  out[t] = s[63 - t];
}

KERNEL(half_of_the_operands_waited_for) {
  __shared__ alignas(128) unsigned s[2][64];
  __shared__ unsigned long long full[2];
  const unsigned t = threadIdx.x;
  if (t == 0) {
    init(full, 1);
    init(full + 1, 1);
    fence_init();
    for (unsigned i = 0; i < 2; ++i) {
      expect(full + i, 256);
      fetch(s[i], in + 64 * i, 256, full + i);
    }
  }
  __syncthreads();
  wait(full, 0);
  RIGHT(wait(full + 1, 0));
  out[t] = s[0][t] + s[1][63 - t];
  FAULT(__syncthreads(); if (t == 0) wait(full + 1, 0));
}

KERNEL(wait_moved_behind_the_use) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  if (t == 0) {
    expect(&full, 256);
    fetch(s, in, 256, &full);
  }
  RIGHT(wait(&full, 0));
  const unsigned x = s[63 - t];
  FAULT(wait(&full, 0));
  out[t] = x;
}

KERNEL(bytes_expected_of_twice_as_many) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  if (t == 0) {
    RIGHT(expect(&full, 256));
    FAULT(expect(&full, 512));
    fetch(s, in, 256, &full);
  }
  wait(&full, 0);
  out[t] = s[63 - t];
}

KERNEL(stale_index_of_a_barrier) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full[2];
  const unsigned t = threadIdx.x;
  if (t == 0) {
    init(full, 1);
    init(full + 1, 1);
    fence_init();
  }
  __syncthreads();
  if (t == 0) {
    expect(full, 256);
    RIGHT(fetch(s, in, 256, full));
    FAULT(fetch(s, in, 256, full + 1));
  }
  wait(full, 0);
  out[t] = s[63 - t];
}

// A tile copied by one linear copy, for which the compiler forgets the arrival.
KERNEL(bytes_expected_without_an_arrival) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  if (t == 0) {
    RIGHT(expect(&full, 256));
    FAULT(asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(shared_address(&full))
                       : "memory"));
    fetch(s, in, 256, &full);
  }
  wait(&full, 0);
  out[t] = s[63 - t];
}

// A barrier for each trip; the compiler takes the parity of the trip for that of the barrier.
KERNEL(parity_of_the_loop_for_that_of_a_barrier) {
  __shared__ alignas(128) unsigned s[4][64];
  __shared__ unsigned long long full[4];
  const unsigned t = threadIdx.x;
  if (t == 0) {
    for (unsigned i = 0; i < 4; ++i) init(full + i, 1);
    fence_init();
  }
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (t == 0) {
      expect(full + i, 256);
      fetch(s[i], in + 64 * i, 256, full + i);
    }
    RIGHT(wait(full + i, 0));
    FAULT(wait(full + i, i % 2));
    sum = sum * 3 + s[i][63 - t];
  }
  FAULT(for (unsigned i = 0; i < 4; ++i) wait(full + i, 0));
  out[t] = sum;
}

KERNEL(stage_refilled_while_others_read_it) {
  __shared__ alignas(128) unsigned s[32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  unsigned sum = 0;
  if (warp() == 0)
    for (unsigned i = 0; i < 3; ++i) {
      if (t == 0) {
        expect(&full, 128);
        fetch(s, in + 32 * i, 128, &full);
      }
      wait(&full, i % 2);
      sum += s[31 - t];
      RIGHT(__syncwarp());
    }
  out[t] = sum;
}

KERNEL(stage_refilled_without_a_proxy_fence) {
  __shared__ alignas(128) unsigned s[32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  unsigned sum = 0;
  if (warp() == 0)
    for (unsigned i = 0; i < 3; ++i) {
      if (t == 0) {
        expect(&full, 128);
        fetch(s, in + 32 * i, 128, &full);
      }
      wait(&full, i % 2);
      sum += s[31 - t];
      RIGHT(fence_async());
      __syncwarp();
    }
  out[t] = sum;
}

KERNEL(flag_polled_before_a_copy) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  volatile unsigned *const flag = scratch + 128;
  if (blockIdx.x == 0) {
    scratch[t] = in[t];
    __threadfence();
    __syncthreads();
    if (t == 0) flag[0] = 1;
    return;
  }
  begin(&full);
  if (t == 0) {
    while (flag[0] == 0) {
    }
    __threadfence();
    RIGHT(fence_async());
    expect(&full, 256);
    fetch(s, scratch, 256, &full);
  }
  wait(&full, 0);
  out[t] = s[63 - t];
}

extern "C" __global__ void map_changed_in_flight(unsigned *out, const unsigned *in, unsigned *scratch,
                                                 const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) unsigned s[2][8][32];
  __shared__ alignas(128) unsigned copy[32];
  __shared__ unsigned long long full[2];
  const unsigned t = threadIdx.x;
  if (t < 32) copy[t] = reinterpret_cast<const unsigned *>(&map)[t];
  if (t == 0) {
    init(full, 1);
    init(full + 1, 1);
    fence_init();
  }
  __syncthreads();
  for (unsigned i = 0; i < 2; ++i) {
    if (t < 32) {
      if (t == 0)
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(shared_address(copy)),
                     "l"(in + 256 * i)
                     : "memory");
      __syncwarp();
      asm volatile(
          "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
              scratch + 32),
          "r"(shared_address(copy))
          : "memory");
      if (t == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(scratch + 32) : "memory");
        expect(full + i, 1024);
        fetch_box(s[i], scratch + 32, 0, 0, full + i);
        RIGHT(wait(full + i, 0));
      }
      __syncwarp();
    }
  }
  wait(full, 0);
  wait(full + 1, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[0][i / 32][i % 32] + s[1][i / 32][i % 32];
}

// Producers and consumers.

KERNEL(mailbox_without_an_acknowledgement) {
  __shared__ unsigned mail;
  __shared__ unsigned long long full, empty;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    init(&full, 1);
    init(&empty, 32);
    fence_init();
  }
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (t == 0) {
      RIGHT(if (i > 0) wait(&empty, (i - 1) % 2));
      mail = in[i];
      arrive(&full);
    }
    if (warp() == 1) {
      wait(&full, i % 2);
      sum += mail;
      arrive(&empty);
    }
    FAULT(if (t == 0 && i < 3) wait(&full, i % 2));
  }
  out[t] = sum;
}

KERNEL(leader_arrives_before_the_others_have_stored) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  if (t < 64) {
    s[t] = in[t];
    RIGHT(asm volatile("bar.sync 1, 64;" ::: "memory"));
    if (t == 0) arrive(&full);
  } else {
    wait(&full, 0);
    out[t - 64] = s[127 - t];
  }
}

KERNEL(phase_overwritten_while_others_read_it) {
  __shared__ unsigned phase;
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  if (t == 0) phase = in[0];
  for (unsigned i = 0; i < 3; ++i) {
    __syncthreads();
    sum += phase;
    RIGHT(__syncthreads());
    if (t == 0) phase = in[0] + i;
  }
  out[t] = sum;
}

KERNEL(one_named_barrier_for_two_roles) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  if (t < 64) {
    for (unsigned i = 0; i < 2; ++i) asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[63 - t];
  } else {
    RIGHT(asm volatile("bar.sync 2, 64;" ::: "memory"));
    FAULT(asm volatile("bar.sync 1, 64;" ::: "memory"));
    out[t] = s[191 - t];
  }
}

// A role with nothing to do for a tile arrives and goes on to the next, where it arrives again.
KERNEL(empty_tiles_that_one_role_arrives_at_only) {
  const unsigned t = threadIdx.x, work = scratch[0];  // none
  for (unsigned tile = 0; tile < 3; ++tile) {
    RIGHT(asm volatile("bar.sync 1, 64;" ::: "memory"));
    FAULT(if (t >= 32 || work) asm volatile("bar.sync 1, 64;" ::: "memory"));
    FAULT(if (t < 32 && !work) asm volatile("bar.arrive 1, 64;" ::: "memory"));
  }
  out[t] = in[t];
}

// The maxima of warps, by way of shared memory, which the next maximum takes for itself.
KERNEL(scratch_of_a_maximum_used_again) {
  __shared__ unsigned s[4];
  const unsigned t = threadIdx.x;
  unsigned most = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const unsigned mine = __reduce_max_sync(~0u, in[128 * i + t] >> i);
    if (t % 32 == 0) s[warp()] = mine;
    __syncthreads();
    most = most * 3 + max(max(s[0], s[1]), max(s[2], s[3]));
    RIGHT(__syncthreads());
  }
  out[t] = most;
}

KERNEL(registers_by_one_warp_of_four) {
  RIGHT(asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"));
  FAULT(if (warp() == 0) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"));
  out[threadIdx.x] = in[threadIdx.x];
}

// Clusters.

KERNEL_OF(__cluster_dims__(2), leader_refills_before_its_peer_has_read) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full);
  meet_cluster();
  unsigned sum = 0;
  for (unsigned i = 0; i < 2; ++i) {
    if (t == 0) expect(&full, 256);
    meet_cluster();
    if (t == 0 && rank_of_cta() == 0)
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
              shared_address(s)),
          "l"(in + 64 * i), "r"(shared_address(&full)), "h"(static_cast<unsigned short>(3))
          : "memory");
    wait(&full, i % 2);
    FAULT(meet_cluster());
    sum += s[63 - t];
    __syncthreads();
    RIGHT(meet_cluster());
    FAULT(if (i == 0 && t == 0 && rank_of_cta() == 1) expect(&full, 256));
    FAULT(if (i == 0 && t == 0 && rank_of_cta() == 0) {
      expect(&full, 256);
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
              shared_address(s)),
          "l"(in + 64), "r"(shared_address(&full)), "h"(static_cast<unsigned short>(3))
          : "memory");
    });
    FAULT(if (i == 0) {
      wait(&full, 1);
      sum += s[63 - t];
      break;
    });
  }
  out[thread()] = sum;
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), leaves_before_its_peer_has_read) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  meet_cluster();
  unsigned x;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(map_to(s + 63 - t, rank_of_cta() ^ 1)) : "memory");
  out[thread()] = x;
  RIGHT(meet_cluster());
}

KERNEL_OF(__cluster_dims__(2), pair_with_different_trips) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x, trips = 2 FAULT(+rank_of_cta());
  unsigned sum = 0;
  for (unsigned i = 0; i < trips; ++i) {
    s[t] = in[64 * i + t];
    meet_cluster();
    unsigned x;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(map_to(s + 63 - t, rank_of_cta() ^ 1)) : "memory");
    sum += x;
    meet_cluster();
  }
  FAULT(if (rank_of_cta() == 0) {
    __shared__ unsigned long long never;
    begin(&never);
    wait(&never, 0);
  });
  out[thread()] = sum;
}

KERNEL_OF(__cluster_dims__(2), local_form_of_a_remote_arrival) {
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  begin(&bar);
  meet_cluster();
  if (t == 0) {
    RIGHT(asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(map_to(&bar, other)) : "memory"));
    FAULT(asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(map_to(&bar, other)) : "memory"));
  }
  wait(&bar, 0);
  out[thread()] = in[thread()];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), arrival_of_the_scope_of_a_cta) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) {
    init(&bar, 64);
    fence_init();
  }
  meet_cluster();
  s[t] = in[thread()];
  RIGHT(asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(map_to(&bar, other)) : "memory"));
  FAULT(asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(map_to(&bar, other)) : "memory"));
  unsigned done, x;
  do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0, 20; selp.u32 %0, 1, 0, p; }"
                  : "=r"(done) : "r"(shared_address(&bar)) : "memory");
  while (!done);
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(map_to(s + 63 - t, other)) : "memory");
  out[thread()] = x;
  meet_cluster();
}

// Each CTA has its half of an operand copied; the leader reads both.
KERNEL_OF(__cluster_dims__(2), peers_half_not_waited_for) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full, ready;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) {
    init(&full, 1);
    init(&ready, 1);
    fence_init();
  }
  meet_cluster();
  if (t == 0) {
    expect(&full, 256);
    fetch(s, in + 64 * rank, 256, &full);
  }
  RIGHT(if (rank == 1 && t == 0) {
    wait(&full, 0);
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(map_to(&ready, 0)) : "memory");
  });
  if (rank == 0) {
    wait(&full, 0);
    unsigned done = 0, x;
    RIGHT(do asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0, 20; selp.u32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(shared_address(&ready)) : "memory");
    while (!done));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(map_to(s + 63 - t, 1)) : "memory");
    out[t] = s[t] + x + done * 0;
  }
  FAULT(wait(&full, 0));
  meet_cluster();
}

// The tensor core.

KERNEL(registers_of_a_reused_in_flight) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x;
  if (t < 64) b[t] = 0x3c003c00;
  fence_async();
  __syncthreads();
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 8ull << 32;
  unsigned a0 = 0x3c003c00, a1 = a0, a2 = a0, a3 = a0;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0;\n"
               "wgmma.commit_group.sync.aligned;\n"
#ifdef WRONG
               "mov.b32 %4, 0;\n"
#endif
               "wgmma.wait_group.sync.aligned 0; }"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3)
               : "l"(descriptor)
               : "memory");
  out[t] = static_cast<unsigned>(d0 + d1 + d2 + d3) + (a0 == 1);
}

KERNEL(accumulators_read_before_the_wait) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x;
  if (t < 64) b[t] = 0x3c003c00;
  fence_async();
  __syncthreads();
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 8ull << 32;
  const unsigned a = 0x3c003c00;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0, early = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%5, %5, %5, %5}, %6, p, 1, 1, 0;\n"
               "wgmma.commit_group.sync.aligned;\n"
#ifdef WRONG
               "mov.f32 %4, %0;\n"
#endif
               "wgmma.wait_group.sync.aligned 0; }"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(early)
               : "r"(a), "l"(descriptor)
               : "memory");
  out[t] = static_cast<unsigned>(d0 + d1 + d2 + d3);
  out[128 + t] = __float_as_uint(early);
}

// Barriers that a compiler left out.

KERNEL(barrier_dropped_for_48_threads) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t < 48) s[t] = in[t];
  RIGHT(__syncthreads());
  if (t < 48) out[t] = s[47 - t];
}

KERNEL(barrier_hoisted_out_of_a_loop) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  __syncthreads();
  for (unsigned i = 0; i < 3; ++i) {
    if (t % 4 == 0) s[t] = in[64 * i + t];
    RIGHT(__syncthreads());
    if (t % 4 == 0) sum += s[60 - t];
    RIGHT(__syncthreads());
  }
  out[t] = sum;
}

KERNEL(loop_without_a_barrier_at_its_end) {
  __shared__ unsigned a[64];
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < 3; ++i) {
    a[t] = in[64 * i + t];
    __syncthreads();
    sum += a[warp() == 0 ? 63 - t : t - 32];
    RIGHT(__syncthreads());
  }
  out[t] = sum;
}

KERNEL(fill_of_a_part_that_was_just_copied) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[63 - t] = in[t];
  RIGHT(__syncthreads());
  if (t >= 10 && t < 16) s[t] = 7;
  __syncthreads();
  out[t] = s[t];
}

KERNEL(atomic_without_a_barrier_behind_it) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t ^ 32] = 0;
  __syncthreads();
  atomicAdd(&s[t], in[t] % 10);
  RIGHT(__syncthreads());
  out[t] = s[t ^ 32];
}

KERNEL(sparse_operand_without_a_proxy_fence) {
  __shared__ alignas(128) unsigned b[128];
  const unsigned t = threadIdx.x;
  b[t] = 0x3c003c00;
  RIGHT(fence_async());
  __syncthreads();
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 16ull << 32;
  const unsigned a = 0x3c003c00, metadata = 0x44444444;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0;\n"
               "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, %6, 0, p, 1, 1, 0; }"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "r"(a), "l"(descriptor), "r"(metadata)
               : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)::"memory");
  out[t] = static_cast<unsigned>(d0 + d1 + d2 + d3);
}

// One warp copies, another reads, through two stages, in a loop that is not unrolled.
KERNEL(ring_of_bulk_copies_between_warps) {
  __shared__ alignas(128) unsigned s[2][32];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x;
  if (t == 0) {
    for (unsigned i = 0; i < 2; ++i) {
      init(full + i, 1);
      init(empty + i, 32);
    }
    fence_init();
  }
  __syncthreads();
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned i = 0; i < 8; ++i) {
    if (t == 32) {
      RIGHT(wait(empty + i % 2, i / 2 % 2 ^ 1));
      FAULT(if (i != 4) wait(empty + i % 2, i / 2 % 2 ^ 1));
      expect(full + i % 2, 128);
      fetch(s[i % 2], in + 32 * i, 128, full + i % 2);
    } else if (t < 32) {
      wait(full + i % 2, i / 2 % 2);
      sum = sum * 3 + s[i % 2][31 - t];
      arrive(empty + i % 2);
    }
  }
  if (t < 32) out[t] = sum;
}
