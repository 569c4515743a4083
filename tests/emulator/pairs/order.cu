// Who comes after whom between blocks: observations, chains of atomics, scopes, one thread for others, right and with a fault.

#include "driver.cuh"
#include "faults.cuh"
#include "ordered.cuh"

namespace {

__device__ void add_relaxed(unsigned *p, unsigned x) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

__device__ void add_release(unsigned *p, unsigned x) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

}  // namespace

// The counter of a lock, reset by a plain store once all have been seen to come.
KERNEL(counter_reset_by_a_warp_that_has_not_seen_it) {
  unsigned *const value = scratch, *const lock = scratch + 64;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    value[t] = in[t];
    __syncthreads();
    if (t == 0) {
      __threadfence();
      add_relaxed(lock, 1);
    }
  } else {
    if (t == 0)
      while (load_acquire(lock) != 1) {
      }
    RIGHT(__syncthreads());
    if (t == 32) lock[0] = 0;
    FAULT(__syncthreads());
    out[t] = value[63 - t];
  }
}

// The flag is the value; what was stored before it is not announced by it.
KERNEL(word_stored_before_a_relaxed_one) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    FAULT(scratch[8] = in[1]);
    store_relaxed(scratch, in[0] | 1);
  } else {
    while (load_relaxed(scratch) == 0) {
    }
    out[0] = scratch[0];
    out[1] = RIGHT(in[1]) FAULT(scratch[8]);
  }
}

KERNEL(relayed_by_a_store_that_releases_nothing) {
  if (threadIdx.x) return;
  unsigned *const first = scratch + 32, *const second = scratch + 64;
  if (blockIdx.x == 0) {
    scratch[0] = in[0];
    store_release(first, 1);
  } else if (blockIdx.x == 1) {
    while (load_acquire(first) == 0) {
    }
    RIGHT(store_release(second, 1));
    FAULT(store_relaxed(second, 1));
  } else {
    while (load_acquire(second) == 0) {
    }
    out[0] = scratch[0];
  }
}

// Three blocks add to one word, each without any order but the first; the last word is the release's.
KERNEL(sum_stored_instead_of_added) {
  if (threadIdx.x) return;
  unsigned *const count = scratch + 32;
  if (blockIdx.x == 0) {
    scratch[0] = in[0];
    add_release(count, 1);
  } else if (blockIdx.x == 1) {
    RIGHT(add_relaxed(count, 1));
    FAULT(while (load_relaxed(count) != 1) {});
    FAULT(store_relaxed(count, 2));
  } else {
    while (load_acquire(count) != 2) {
    }
    out[0] = scratch[0];
  }
}

KERNEL(release_of_a_block_to_an_acquire_of_all) {
  if (threadIdx.x) return;
  unsigned *const flag = scratch + 32;
  if (blockIdx.x == 0) {
    scratch[0] = in[0];
    RIGHT(asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory"));
    FAULT(asm volatile("st.release.cta.global.u32 [%0], 1;" ::"l"(flag) : "memory"));
  } else {
    unsigned x;
    do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(flag) : "memory");
    while (x == 0);
    out[0] = scratch[0];
  }
}

// A barrier of the grid whose last block sets the count to 0 and the round up.
KERNEL(round_begun_before_the_count_is_cleared) {
  const unsigned t = threadIdx.x, b = blockIdx.x;
  unsigned *const count = scratch + 1024, *const round = scratch + 1056;
  unsigned x = in[64 * b + t];
  for (unsigned i = 0; i < 3; ++i) {
    unsigned *const now = scratch + 256 * i;
    now[64 * b + t] = x;
    __syncthreads();
    if (t == 0) {
      __threadfence();
      if (atomicAdd(count, 1) == gridDim.x - 1) {
        RIGHT(count[0] = 0);
        RIGHT(__threadfence());
        RIGHT(atomicAdd(round, 1));
        FAULT(atomicAdd(round, 1));
        FAULT(__threadfence());
        FAULT(count[0] = 0);
      } else {
        while (load_relaxed(round) == i) {
        }
      }
      __threadfence();
    }
    __syncthreads();
    x = x * 3 + now[64 * ((b + 1) % gridDim.x) + 63 - t];
  }
  out[64 * b + t] = x;
}

// Nodes on a stack: 0 is the end. Each block pushes two, then all are taken at once.
KERNEL(node_linked_after_it_was_pushed) {
  if (threadIdx.x) return;
  unsigned *const head = scratch, *const next = scratch + 32, *const value = scratch + 64, *const done = scratch + 96;
  const unsigned b = blockIdx.x;
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned node = 2 * b + i + 1;
    value[node] = in[node];
    unsigned top = load_relaxed(head);
    for (;;) {
      RIGHT(next[node] = top);
      __threadfence();
      const unsigned was = atomicCAS(head, top, node);
      if (was == top) break;
      top = was;
    }
    FAULT(next[node] = top);
    unsigned node_taken = 0;
    while (node_taken == 0 && b == 1 && i == 1) node_taken = atomicExch(head, 0);
    __threadfence();
    unsigned sum = 0, n = 0;
    for (unsigned at = node_taken; at && n < 8; at = next[at], ++n) sum += value[at];
    if (n) atomicAdd(out, sum);
  }
  __threadfence();
  if (atomicAdd(done, 1) == 1) {
    __threadfence();
    unsigned sum = 0, n = 0;
    for (unsigned at = load_relaxed(head); at && n < 8; at = next[at], ++n) sum += value[at];
    atomicAdd(out, sum);
  }
}

KERNEL(changed_cleared_while_it_is_looked_at) {
  __shared__ unsigned changed, s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t] % 64;
  for (;;) {
    if (t == 0) changed = 0;
    __syncthreads();
    const unsigned left = t ? s[t - 1] : 0, own = s[t];
    __syncthreads();
    if (left > own) {
      s[t] = left;
      changed = 1;
    }
    __syncthreads();
    const bool again = changed;
    RIGHT(__syncthreads());
    if (!again) break;
  }
  out[t] = s[t];
}

KERNEL(reader_that_leaves_before_it_has_read) {
  if (threadIdx.x) return;
  unsigned *const readers = scratch + 32;  // 1000 stands for a writer
  for (unsigned i = 0; i < 2; ++i)
    if (blockIdx.x == 0) {
      while (atomicCAS(readers, 0, 1000)) {
      }
      __threadfence();
      scratch[0] = in[i];
      scratch[1] = in[i];
      __threadfence();
      atomicSub(readers, 1000);
    } else {
      unsigned was = load_relaxed(readers);
      for (;;) {
        if (was >= 1000) {
          was = load_relaxed(readers);
          continue;
        }
        const unsigned now = atomicCAS(readers, was, was + 1);
        if (now == was) break;
        was = now;
      }
      __threadfence();
      FAULT(__threadfence(); atomicSub(readers, 1));
      const unsigned a = scratch[0], b = scratch[1];
      RIGHT(__threadfence(); atomicSub(readers, 1));
      if (a == b) atomicAdd(out, 1);
    }
}

KERNEL(leader_counted_from_one) {
  __shared__ unsigned places[64], used;
  const unsigned t = threadIdx.x;
  if (t == 0) used = 0;
  __syncthreads();
  if (in[t] % 3 == 0) {
    const unsigned mask = __activemask(), leader = __ffs(mask) - RIGHT(1) FAULT(0);
    unsigned first = 0;
    if (lane() == __ffs(mask) - 1) first = atomicAdd(&used, __popc(mask));
    first = __shfl_sync(mask, first, leader % 32);
    const unsigned own = first + __popc(mask & ((1u << lane()) - 1));
    places[own] = in[t];
  }
  __syncthreads();
  if (t < used) atomicAdd(out, places[t]);
}

KERNEL(any_producer_waited_for_instead_of_all) {
  unsigned *const ready = scratch + 512;
  const unsigned t = threadIdx.x;
  if (blockIdx.x < 3) {
    scratch[64 * blockIdx.x + t] = in[64 * blockIdx.x + t];
    __syncthreads();
    if (t == 0) add_release(ready, 1);
  } else {
    if (t == 0)
      while (load_acquire(ready) < RIGHT(3) FAULT(1)) {
      }
    __syncthreads();
    out[t] = scratch[t] + scratch[64 + t] * 3 + scratch[128 + t] * 9;
  }
}

KERNEL(stores_of_lanes_announced_by_the_first) {
  unsigned *const flag = scratch + 512;
  const unsigned l = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[l] = in[l];
    RIGHT(__syncwarp());
    if (l == 0) store_release(flag, 1);
  } else {
    while (load_acquire(flag) == 0) {
    }
    out[l] = scratch[31 - l];
  }
}

KERNEL(flag_seen_by_the_first_lane_for_all) {
  unsigned *const flag = scratch + 512;
  const unsigned l = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[l] = in[l];
    __syncwarp();
    if (l == 0) store_release(flag, 1);
  } else {
    FAULT(const unsigned x = scratch[31 - l]);
    if (l == 0)
      while (load_acquire(flag) == 0) {
      }
    __syncwarp();
    RIGHT(const unsigned x = scratch[31 - l]);
    out[l] = x;
  }
}

// Two blocks hand a word to and fro by exchanging it for 0.
KERNEL(mailbox_emptied_before_its_letter_was_read) {
  if (threadIdx.x) return;
  unsigned *const box = scratch + 32, *const letter = scratch + 64;
  unsigned sum = 0;
  for (unsigned i = 0; i < 3; ++i)
    if (blockIdx.x == 0) {
      while (load_acquire(box)) {
      }
      letter[0] = in[i];
      __threadfence();
      atomicExch(box, 1);
    } else {
      RIGHT(while (load_acquire(box) == 0) {});
      RIGHT(sum = sum * 3 + letter[0]);
      RIGHT(store_release(box, 0));
      FAULT(while (atomicExch(box, 0) == 0) {});
      FAULT(__threadfence());
      FAULT(sum = sum * 3 + letter[0]);
    }
  if (blockIdx.x) out[0] = sum;
}
