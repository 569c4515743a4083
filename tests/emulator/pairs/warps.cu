// What lanes of a warp, and blocks of a grid, do together: right and with a fault.

#include "driver.cuh"
#include "faults.cuh"

// Warps.

KERNEL(warp_transposes_through_shared_memory) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  RIGHT(__syncwarp());
  out[t] = s[t ^ 31];
}

KERNEL(place_announced_by_a_leader) {
  __shared__ unsigned place[2], count;
  const unsigned t = threadIdx.x, votes = __ballot_sync(ALL, in[t] % 2);
  if (t == 0) count = 0;
  __syncthreads();
  if (lane() == 0) place[warp()] = atomicAdd(&count, __popc(votes));
  RIGHT(__syncwarp());
  const unsigned at = place[warp()] + __popc(votes & ((1u << lane()) - 1));
  if (in[t] % 2) scratch[at] = 1;
  __syncthreads();
  out[t] = scratch[t];
}

KERNEL(half_of_a_warp_synchronised) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (warp() == 0) {
    s[t] = in[t];
    RIGHT(__syncwarp());
    FAULT(__syncwarp(t < 16 ? 0xffff : 0xffff0000));
    out[t] = s[t ^ 16];
  }
}

KERNEL(scan_of_a_warp_in_shared_memory) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  for (unsigned step = 1; step < 32; step *= 2) {
    RIGHT(__syncwarp());
    const unsigned x = lane() >= step ? s[t - step] : 0;
    RIGHT(__syncwarp());
    s[t] += x;
  }
  out[t] = s[t];
}

KERNEL(mask_of_lanes_that_happen_to_be_there) {
  const unsigned t = threadIdx.x;
  unsigned x = in[t];
  if (lane() % 2) x = x * 5 + in[x % 64];
  RIGHT(const unsigned mask = ALL);
  FAULT(const unsigned mask = __activemask());
  out[t] = __popc(mask) + __reduce_add_sync(mask, x % 16);
}

KERNEL(leader_of_a_branch_counts_for_the_warp) {
  __shared__ unsigned count;
  const unsigned t = threadIdx.x;
  if (t == 0) count = 0;
  __syncthreads();
  if (in[t] % 2) {
    RIGHT(atomicAdd(&count, 1));
    FAULT(const unsigned mask = __activemask());
    FAULT(if (lane() == __ffs(mask) - 1) count += __popc(mask));
  }
  __syncthreads();
  if (t == 0) out[0] = count;
}

// Blocks of a grid.

KERNEL(last_block_adds_up) {
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  scratch[thread()] = in[thread()] * 3;
  RIGHT(__threadfence());
  RIGHT(__syncthreads());
  if (t == 0) last = atomicInc(scratch + 4000, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  RIGHT(__threadfence());
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += scratch[64 * i + t];
  out[t] = sum;
}

KERNEL(last_block_without_a_barrier_before_the_ticket) {
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  scratch[thread()] = in[thread()] * 3;
  __threadfence();
  RIGHT(__syncthreads());
  if (t == 0) last = atomicInc(scratch + 4000, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += scratch[64 * i + t];
  out[t] = sum;
}

KERNEL(total_read_by_whoever_is_first) {
  const unsigned t = threadIdx.x;
  __shared__ unsigned total, ticket;
  atomicAdd(scratch, in[thread()] % 100);
  __threadfence();
  __syncthreads();
  if (t == 0) ticket = atomicAdd(scratch + 1, 1);
  __syncthreads();
  RIGHT(if (ticket == gridDim.x - 1)) if (t == 0) {
    total = atomicAdd(scratch, 0);
    out[0] = total;
  }
}

__device__ void meet_grid(unsigned *count, unsigned target) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*static_cast<volatile unsigned *>(count) < target) {
    }
    __threadfence();
  }
  __syncthreads();
}

KERNEL(second_barrier_of_a_grid) {
  const unsigned t = thread();
  scratch[t] = in[t];
  meet_grid(scratch + 4000, gridDim.x);
  const unsigned x = scratch[(t + 64) % 256];
  RIGHT(meet_grid(scratch + 4000, 2 * gridDim.x));
  FAULT(meet_grid(scratch + 4000, gridDim.x));
  scratch[t] = x + 1;
  meet_grid(scratch + 4000, 3 * gridDim.x);
  out[t] = scratch[(t + 128) % 256];
}

KERNEL(barrier_of_a_grid_that_one_thread_waits_at) {
  const unsigned t = thread();
  scratch[t] = in[t];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(scratch + 4000, 1);
    while (atomicAdd(scratch + 4000, 0) < gridDim.x) {
    }
    __threadfence();
  }
  RIGHT(__syncthreads());
  out[t] = scratch[(t + 64) % 256];
}

KERNEL(barrier_of_a_grid_that_counts_threads) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(scratch, 1);
    while (*static_cast<volatile unsigned *>(scratch) < gridDim.x RIGHT(*1) FAULT(*blockDim.x)) {
    }
  }
  __syncthreads();
  out[thread()] = in[thread()];
}

KERNEL(ticket_of_the_scope_of_a_block) {
  __shared__ unsigned place;
  if (threadIdx.x == 0) {
    RIGHT(place = atomicAdd(scratch, 1));
    FAULT(place = atomicAdd_block(scratch, 1));
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicOr(out, 1u << place);
}

KERNEL(table_read_through_the_read_only_path) {
  const unsigned t = threadIdx.x;
  scratch[t] = in[t];
  __syncthreads();
  RIGHT(out[t] = scratch[63 - t]);
  FAULT(out[t] = __ldg(scratch + 63 - t));
}

KERNEL(work_taken_from_a_counter) {
  __shared__ unsigned at;
  const unsigned t = threadIdx.x;
  for (;;) {
    if (t == 0) at = atomicAdd(scratch, 64);
    __syncthreads();
    const unsigned begin = at;
    RIGHT(__syncthreads());
    if (begin >= 512) break;
    out[begin + t] = in[begin + t] + 1;
  }
}

KERNEL(work_taken_beyond_the_end) {
  const unsigned t = thread();
  for (unsigned i = t; i < 4096 FAULT(+256); i += 256) out[i] = in[i] ^ 1;
}

// Locks.

KERNEL(lock_without_fences) {
  if (threadIdx.x == 0) {
    while (atomicCAS(scratch, 0, 1)) {
    }
    RIGHT(__threadfence());
    scratch[1] = scratch[1] * 1 + in[blockIdx.x];
    RIGHT(__threadfence());
    atomicExch(scratch, 0);
    RIGHT(__threadfence());
    if (atomicAdd(scratch + 2, 1) == gridDim.x - 1) out[0] = atomicAdd(scratch + 1, 0);
  }
}

KERNEL(lock_released_by_a_plain_store) {
  if (threadIdx.x == 0) {
    while (atomicCAS(scratch, 0, 1)) {
    }
    __threadfence();
    scratch[1] += in[blockIdx.x];
    RIGHT(__threadfence());
    RIGHT(atomicExch(scratch, 0));
    FAULT(scratch[0] = 0);
    __threadfence();
    if (atomicAdd(scratch + 2, 1) == gridDim.x - 1) out[0] = atomicAdd(scratch + 1, 0);
  }
}

KERNEL(ticket_lock_served_too_early) {
  if (threadIdx.x == 0) {
    const unsigned mine = atomicAdd(scratch, 1);
    while (atomicAdd(scratch + 1, 0) != mine) {
    }
    __threadfence();
    const unsigned sum = scratch[2] + in[blockIdx.x];
    FAULT(atomicAdd(scratch + 1, 1));
    scratch[2] = sum;
    __threadfence();
    RIGHT(atomicAdd(scratch + 1, 1));
    if (mine == gridDim.x - 1) out[0] = sum;
  }
}

KERNEL(locks_of_every_lane) {
  bool done = false;
  while (!done) {
    if (atomicCAS(scratch, 0, 1) == 0) {
      __threadfence();
      scratch[1] = scratch[1] + in[threadIdx.x];
      RIGHT(__threadfence());
      atomicExch(scratch, 0);
      done = true;
    }
  }
  __syncthreads();
  RIGHT(__threadfence());
  if (threadIdx.x == 0) out[0] = scratch[1];
}

KERNEL(two_locks_in_opposite_order) {
  if (threadIdx.x == 0) {
    const unsigned first = FAULT(blockIdx.x %) 2 RIGHT(-2), second = 1 - first;
    while (atomicCAS(scratch + first, 0, 1)) {
    }
    __threadfence();
    FAULT(atomicAdd(scratch + 3, 1));
    FAULT(while (atomicAdd(scratch + 3, 0) < 2){});
    while (atomicCAS(scratch + second, 0, 1)) {
    }
    __threadfence();
    scratch[2] += in[blockIdx.x];
    __threadfence();
    atomicExch(scratch + second, 0);
    atomicExch(scratch + first, 0);
    if (atomicAdd(scratch + 4, 1) == gridDim.x - 1) {
      __threadfence();
      out[0] = scratch[2];
    }
  }
}

KERNEL(mutual_exclusion_without_atomics) {
  volatile unsigned *const wants = scratch;
  volatile unsigned *const turn = scratch + 2;
  if (threadIdx.x) return;
  const unsigned me = blockIdx.x, other = 1 - me;
  RIGHT(while (atomicCAS(scratch + 8, 0, 1)){});
  FAULT(wants[me] = 1; *turn = other; while (wants[other] && *turn == other){});
  __threadfence();
  scratch[4] += in[me];
  __threadfence();
  RIGHT(atomicExch(scratch + 8, 0));
  FAULT(wants[me] = 0);
  if (atomicAdd(scratch + 6, 1) == 1) {
    __threadfence();
    out[0] = scratch[4];
  }
}

// Flags and queues.

KERNEL(flag_without_a_fence) {
  volatile unsigned *const flag = scratch + 1000;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[t] = in[t];
    RIGHT(__threadfence());
    __syncthreads();
    if (t == 0) *flag = 1;
  } else {
    if (t == 0)
      while (*flag == 0) {
      }
    RIGHT(__threadfence());
    __syncthreads();
    out[t] = scratch[63 - t];
  }
}

KERNEL(value_fetched_before_its_flag) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) {
      scratch[0] = in[0];
      __threadfence();
      atomicExch(scratch + 1, 1);
    }
  } else if (t == 0) {
    FAULT(const unsigned x = scratch[0]);
    while (atomicAdd(scratch + 1, 0) == 0) {
    }
    __threadfence();
    RIGHT(const unsigned x = scratch[0]);
    out[0] = x;
  }
}

KERNEL(ring_without_room) {
  unsigned *const ring = scratch, *const head = scratch + 100, *const tail = scratch + 101;
  if (threadIdx.x) return;
  unsigned sum = 0;
  if (blockIdx.x == 0)
    for (unsigned i = 0; i < 8; ++i) {
      RIGHT(while (i - atomicAdd(tail, 0) >= 4){});
      __threadfence();
      ring[i % 4] = in[i];
      __threadfence();
      atomicExch(head, i + 1);
    }
  else {
    for (unsigned i = 0; i < 8; ++i) {
      while (atomicAdd(head, 0) <= i) {
      }
      __threadfence();
      sum = sum * 3 + ring[i % 4];
      __threadfence();
      atomicExch(tail, i + 1);
    }
    out[0] = sum;
  }
}

KERNEL(table_made_once) {
  const unsigned t = threadIdx.x;
  if (t == 0) {
    RIGHT(if (atomicAdd(scratch, 0) == 0))
    FAULT(if (scratch[0] == 0))
    if (atomicCAS(scratch + 1, 0, 1) == 0) {
      scratch[2] = in[2] | 1;
      __threadfence();
      RIGHT(atomicExch(scratch, 1));
      FAULT(scratch[0] = 1);
    }
    RIGHT(while (atomicAdd(scratch, 0) == 0){});
    RIGHT(__threadfence());
    out[blockIdx.x] = scratch[2];
  }
}

KERNEL(look_back_with_two_words) {
  volatile unsigned *const sums = scratch, *const flags = scratch + 100;
  if (threadIdx.x) return;
  const unsigned b = blockIdx.x;
  unsigned before = 0;
  if (b) {
    while (flags[b - 1] == 0) {
    }
    __threadfence();
    before = sums[b - 1];
  }
  RIGHT(sums[b] = before + in[b]);
  RIGHT(__threadfence());
  flags[b] = 1;
  FAULT(sums[b] = before + in[b]);
  out[b] = before;
}

KERNEL(look_back_with_a_packed_word) {
  unsigned long long *const states = reinterpret_cast<unsigned long long *>(scratch);
  volatile unsigned *const halves = scratch;
  if (threadIdx.x) return;
  const unsigned b = blockIdx.x;
  unsigned before = 0;
  if (b) {
    RIGHT(unsigned long long state; do state = *static_cast<volatile unsigned long long *>(states + b - 1); while (!state));
    RIGHT(before = static_cast<unsigned>(state));
    FAULT(while (!halves[2 * b - 1]){});
    FAULT(before = halves[2 * b - 2]);
  }
  const unsigned sum = before + in[b];
  RIGHT(*static_cast<volatile unsigned long long *>(states + b) = 1ull << 32 | sum);
  FAULT(halves[2 * b + 1] = 1; halves[2 * b] = sum);
  out[b] = before;
}

KERNEL(release_of_the_scope_of_a_block) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    scratch[0] = in[0];
    RIGHT(asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(scratch + 1) : "memory"));
    FAULT(asm volatile("st.release.cta.global.u32 [%0], 1;" ::"l"(scratch + 1) : "memory"));
  } else {
    unsigned flag;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(scratch + 1) : "memory");
    while (!flag);
    out[0] = scratch[0];
  }
}

KERNEL(flag_of_another_warp) {
  __shared__ volatile unsigned flag;
  __shared__ unsigned value;
  const unsigned t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == 0) {
    value = in[0];
    RIGHT(__threadfence_block());
    flag = 1;
  } else if (t == 32) {
    while (!flag) {
    }
    RIGHT(__threadfence_block());
    out[0] = value;
  }
}

KERNEL(snapshot_taken_while_it_changes) {
  volatile unsigned *const version = scratch, *const data = scratch + 8;
  if (threadIdx.x) return;
  if (blockIdx.x == 0)
    for (unsigned i = 1; i < 4; ++i) {
      version[0] = 2 * i - 1;
      __threadfence();
      data[0] = i * in[0];
      FAULT(__nanosleep(100));
      data[1] = i * in[0] + 1;
      __threadfence();
      version[0] = 2 * i;
    }
  else {
    unsigned before, after, a, b;
    do {
      before = version[0];
      __threadfence();
      a = data[0];
      FAULT(__nanosleep(20));
      b = data[1];
      __threadfence();
      after = version[0];
    } while (RIGHT(before % 2 || before != after || before == 0) FAULT(before == 0 && after == 99));
    out[0] = b - a;
  }
}
