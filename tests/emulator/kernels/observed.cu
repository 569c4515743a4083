// Words that are used plainly once a volatile or relaxed load, or an acquire, has seen what others stored there.

#include "hopper.cuh"
#include "ordered.cuh"

namespace {

__device__ void announce(unsigned *flag) {
  __threadfence();
  atomicExch(flag, 1);
}

}  // namespace

KERNEL(by_a_volatile_load) {
  volatile unsigned *const flag = scratch;
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    flag[0] = 1;
  } else {
    while (flag[0] == 0) {
    }
    scratch[0] = 0;
    out[0] = in[0];
  }
}

KERNEL(a_counter_that_is_full) {
  if (threadIdx.x) return;
  if (blockIdx.x < 3) {
    __threadfence();
    atomicAdd(scratch, 1);
  } else {
    while (load_relaxed(scratch) != 3) {
    }
    scratch[0] = 0;
    out[0] = scratch[0] + in[0];
  }
}

KERNEL(handed_on_by_a_named_barrier) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) announce(scratch);
  } else if (warp() == 0) {
    if (t == 0)
      while (load_relaxed(scratch) == 0) {
      }
    __syncwarp();
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (t == 32) {
      scratch[0] = 0;
      out[0] = in[0];
    }
  }
}

KERNEL(handed_on_by_an_mbarrier) {
  __shared__ unsigned long long seen;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) announce(scratch);
    return;
  }
  if (t == 0) init(&seen, 1);
  __syncthreads();
  if (t == 0) {
    while (load_relaxed(scratch) == 0) {
    }
    arrive(&seen);
  }
  wait(&seen, 0);
  if (t == 33) {
    scratch[0] = 0;
    out[0] = in[0];
  }
}

KERNEL(a_flag_in_shared_memory) {
  __shared__ unsigned flag, value;
  volatile unsigned *const polled = &flag;
  const unsigned t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == 0) {
    value = in[0];
    __threadfence_block();
    *polled = 1;
  } else if (t == 32) {
    while (*polled == 0) {
    }
    __threadfence_block();
    flag = 2;
    out[0] = value;
  }
}

KERNEL(a_flag_of_64_bits_for_the_system) {
  auto *const flag = reinterpret_cast<unsigned long long *>(scratch);
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    scratch[9] = in[0];
    asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.u64 [%0], 5;" ::"l"(flag) : "memory");
  } else {
    unsigned long long x;
    do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(flag) : "memory");
    while (x == 0);
    flag[0] = 0;
    out[0] = scratch[9];
  }
}

// Each CTA of a pair counts three arrivals in the other's memory.
KERNEL(a_counter_in_a_peer) {
  __shared__ unsigned count;
  const unsigned t = threadIdx.x;
  if (t == 0) count = 0;
  meet_cluster();
  if (t < 3)
    asm volatile("red.release.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(map_to(&count, rank_of_cta() ^ 1)) : "memory");
  if (t == 32) {
    unsigned x;
    do asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(x) : "r"(shared_address(&count)) : "memory");
    while (x != 3);
    count = 0;
    out[blockIdx.x] = in[0];
  }
  meet_cluster();
}
