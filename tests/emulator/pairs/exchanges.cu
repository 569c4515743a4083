// Words that blocks and warps hand to each other: queues, look-back, turns, tables, ranks, right and with a fault.

#include "driver.cuh"
#include "faults.cuh"
#include "ordered.cuh"

// Slots with sequence numbers (Vyukov); blocks 0 and 1 put four values each, blocks 2 and 3 take four each.
KERNEL(sequence_of_a_slot_set_before_its_value) {
  unsigned *const values = scratch, *const sequence = scratch + 8, *const head = scratch + 16, *const tail = scratch + 17;
  if (threadIdx.x) return;
  for (unsigned i = 0; i < 4; ++i)
    if (blockIdx.x < 2) {
      const unsigned ticket = atomicAdd(head, 1), slot = ticket % 4, round = ticket / 4;
      while (load_acquire(sequence + slot) != 2 * round) {
      }
      FAULT(store_release(sequence + slot, 2 * round + 1));
      values[slot] = in[4 * blockIdx.x + i];
      RIGHT(store_release(sequence + slot, 2 * round + 1));
    } else {
      const unsigned ticket = atomicAdd(tail, 1), slot = ticket % 4, round = ticket / 4;
      while (load_acquire(sequence + slot) != 2 * round + 1) {
      }
      const unsigned x = values[slot];
      store_release(sequence + slot, 2 * round + 2);
      atomicAdd(out, x);
    }
}

KERNEL(slot_given_back_before_it_was_read) {
  unsigned *const values = scratch, *const sequence = scratch + 8, *const head = scratch + 16, *const tail = scratch + 17;
  if (threadIdx.x) return;
  for (unsigned i = 0; i < 4; ++i)
    if (blockIdx.x < 2) {
      const unsigned ticket = atomicAdd(head, 1), slot = ticket % 2, round = ticket / 2;
      while (load_acquire(sequence + slot) != 2 * round) {
      }
      values[slot] = in[4 * blockIdx.x + i];
      store_release(sequence + slot, 2 * round + 1);
    } else {
      const unsigned ticket = atomicAdd(tail, 1), slot = ticket % 2, round = ticket / 2;
      while (load_acquire(sequence + slot) != 2 * round + 1) {
      }
      FAULT(store_release(sequence + slot, 2 * round + 2));
      atomicAdd(out, values[slot]);
      RIGHT(store_release(sequence + slot, 2 * round + 2));
    }
}

// A warp looks back over 32 blocks at once: 1 is a block's own sum, 2 the sum up to it.
KERNEL(look_back_of_a_warp) {
  unsigned *const own = scratch, *const upto = scratch + 32, *const state = scratch + 64;
  const unsigned b = blockIdx.x, l = threadIdx.x;
  const unsigned x = in[b];
  if (l == 0) {
    own[b] = x;
    store_release(state + b, 1);
  }
  unsigned before = 0;
  for (int at = static_cast<int>(b) - 1; at >= 0;) {
    const int mine = at - static_cast<int>(l);
    FAULT(const unsigned early = mine >= 0 ? own[mine] : 0);
    unsigned seen = 2;
    if (mine >= 0)
      do seen = load_acquire(state + mine);
      while (seen == 0);
    __syncwarp();
    const unsigned ends = __ballot_sync(ALL, seen == 2), first = __ffs(ends) - 1;
    unsigned value = 0;
    RIGHT(if (mine >= 0 && l <= first) value = seen == 2 ? upto[mine] : own[mine]);
    FAULT(if (mine >= 0 && l <= first) value = seen == 2 ? upto[mine] : early);
    before += __reduce_add_sync(ALL, value);
    if (ends) break;
    at -= 32;
  }
  if (l == 0) {
    upto[b] = before + x;
    store_release(state + b, 2);
    out[b] = before;
  }
}

KERNEL(node_published_by_a_plain_store) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    scratch[8] = in[0];
    scratch[9] = in[1];
    __threadfence();
    RIGHT(atomicExch(scratch, 8));
    FAULT(scratch[0] = 8);
  } else {
    unsigned at;
    while ((at = load_acquire(scratch)) == 0) {
    }
    out[0] = scratch[at] ^ scratch[at + 1];
  }
}

// Blocks share a tile: all but the last leave a partial sum, and the last adds them up.
KERNEL(partial_sum_read_before_its_turn) {
  const unsigned t = threadIdx.x, b = blockIdx.x;
  unsigned *const partial = scratch + 64 * b, *const done = scratch + 4000;
  if (b < gridDim.x - 1) {
    partial[t] = in[64 * b + t];
    __threadfence();
    __syncthreads();
    if (t == 0) atomicExch(done + b, 1);
    return;
  }
  unsigned sum = in[64 * b + t];
  for (unsigned i = 0; i < b; ++i) {
    RIGHT(if (t == 0) while (load_acquire(done + i) == 0) {});
    FAULT(if (t == 0) while (load_acquire(done + (i ? i - 1 : 0)) == 0) {});
    __syncthreads();
    sum += scratch[64 * i + t];
  }
  out[t] = sum;
}

KERNEL(turn_taken_by_one_thread_for_all) {
  const unsigned t = threadIdx.x;
  if (t == 0)
    while (load_acquire(scratch + 1000) != blockIdx.x) {
    }
  RIGHT(__syncthreads());
  scratch[t] = (blockIdx.x ? scratch[t] * 3 : 0) + in[thread()];
  __syncthreads();
  if (t == 0) store_release(scratch + 1000, blockIdx.x + 1);
  if (blockIdx.x == gridDim.x - 1) out[t] = scratch[t];
}

// The next tile is fetched while this one is worked on.
KERNEL(next_tile_in_the_slot_of_this_one) {
  __shared__ unsigned next[2];
  const unsigned t = threadIdx.x;
  if (t == 0) next[0] = atomicAdd(scratch, 1);
  __syncthreads();
  for (unsigned i = 0;; ++i) {
    RIGHT(const unsigned now = i % 2, then = now ^ 1);
    FAULT(const unsigned now = 0, then = 0);
    const unsigned tile = next[now];
    if (tile >= 8) break;
    if (t == 0) next[then] = atomicAdd(scratch, 1);
    out[64 * tile + t] = in[64 * tile + t] + 5;
    __syncthreads();
  }
}

// Ranks by digit, as in a radix sort: a leader adds for its peers.
KERNEL(counter_read_by_peers_while_the_leader_adds) {
  __shared__ unsigned counters[16];
  const unsigned l = threadIdx.x;
  if (l < 16) counters[l] = 0;
  __syncwarp();
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned digit = in[32 * i + l] % 16, peers = __match_any_sync(ALL, digit);
    const unsigned leader = __ffs(peers) - 1, rank = __popc(peers & ((1u << l) - 1));
    const unsigned before = counters[digit];
    RIGHT(__syncwarp());
    if (l == leader) counters[digit] = before + __popc(peers);
    __syncwarp();
    out[32 * i + l] = before + rank;
  }
}

KERNEL(value_of_a_key_read_before_it_is_there) {
  unsigned *const keys = scratch, *const values = scratch + 64;
  const unsigned t = threadIdx.x, key = t % 8 + 1;
  if (blockIdx.x == 0 && t < 8) {
    atomicCAS(keys + key, 0, key);
    RIGHT(__threadfence());
    RIGHT(store_release(values + key, in[key] | 1));
    FAULT(values[key] = in[key] | 1);
  }
  if (blockIdx.x == 1) {
    while (atomicAdd(keys + key, 0) != key) {
    }
    unsigned x;
    RIGHT(while ((x = load_acquire(values + key)) == 0) {});
    FAULT(__threadfence(); x = values[key]);
    out[t] = x;
  }
}

KERNEL(roots_found_by_plain_loads) {
  // Union-find over 64 elements: links go to smaller roots by CAS.
  const unsigned t = threadIdx.x;
  scratch[t] = t;
  __syncthreads();
  unsigned a = t, b = in[t] % 64 & ~7u;
  for (;;) {
    RIGHT(for (unsigned next; (next = load_relaxed(scratch + a)) != a;) a = next);
    RIGHT(for (unsigned next; (next = load_relaxed(scratch + b)) != b;) b = next);
    FAULT(while (scratch[a] != a) a = scratch[a]);
    FAULT(while (scratch[b] != b) b = scratch[b]);
    if (a == b) break;
    const unsigned high = max(a, b), low = min(a, b);
    if (atomicCAS(scratch + high, high, low) == high) break;
  }
  __syncthreads();
  unsigned root = t;
  while (scratch[root] != root) root = scratch[root];
  out[t] = root;
}

KERNEL(sense_that_is_read_plainly) {
  __shared__ unsigned count, s[128];
  __shared__ RIGHT(volatile) unsigned sense;
  const unsigned t = threadIdx.x;
  if (t == 0) count = 0, sense = 0;
  __syncthreads();
  unsigned x = in[t];
  for (unsigned i = 1; i < 4; ++i) {
    s[t] = x;
    __syncwarp();
    if (lane() == 0) {
      __threadfence_block();
      if (atomicAdd(&count, 1) == 3) {
        count = 0;
        __threadfence_block();
        sense = i;
      } else {
        RIGHT(while (sense != i){});
        FAULT(for (unsigned k = 0; k < 40 && *const_cast<unsigned *>(&sense) != i; ++k) __nanosleep(20));
      }
      __threadfence_block();
    }
    __syncwarp();
    x = x * 3 + s[(t + 32) % 128];
    __syncthreads();
  }
  out[t] = x;
}

KERNEL(rank_that_counts_the_lane_itself) {
  const unsigned l = threadIdx.x, keep = in[l] % 2, mask = __ballot_sync(ALL, keep);
  RIGHT(const unsigned rank = __popc(mask & ((1u << l) - 1)));
  FAULT(const unsigned rank = __popc(mask & ((2u << l) - 1)));
  if (keep) out[rank] = in[l];
}

KERNEL(fence_of_the_block_between_blocks) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[t] = in[t];
    RIGHT(__threadfence());
    FAULT(__threadfence_block());
    __syncthreads();
    if (t == 0) atomicExch(scratch + 1000, 1);
  } else {
    if (t == 0)
      while (atomicAdd(scratch + 1000, 0) == 0) {
      }
    __syncthreads();
    __threadfence();
    out[t] = scratch[63 - t];
  }
}

KERNEL(steps_of_a_warp_by_volatile_alone) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 32) {
    volatile unsigned *const v = s;
    RIGHT(unsigned x = v[t] + v[t + 32]);
    RIGHT(for (unsigned half = 16; half; half /= 2) { __syncwarp(); v[t] = x; __syncwarp(); x += v[t + half]; });
    RIGHT(if (t == 0) out[0] = x);
    FAULT(v[t] += v[t + 32]; v[t] += v[t + 16]; v[t] += v[t + 8]; v[t] += v[t + 4]; v[t] += v[t + 2]; v[t] += v[t + 1]);
    FAULT(if (t == 0) out[0] = v[0]);
  }
}

KERNEL(mask_taken_before_lanes_left_the_loop) {
  const unsigned l = threadIdx.x, n = in[l] % 4 + 1;
  unsigned sum = 0, mask = ALL;
  for (unsigned i = 0; i < 4; ++i) {
    RIGHT(mask = __ballot_sync(mask, i < n));
    if (i >= n) break;
    sum += __reduce_add_sync(mask, in[32 * i + l] % 100);
  }
  out[l] = sum;
}

KERNEL(longest_path_relaxed_by_plain_stores) {
  // Bellman-Ford on a ring with chords: distances only grow.
  __shared__ unsigned distance[64];
  const unsigned t = threadIdx.x;
  distance[t] = t == 0;
  __syncthreads();
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned mine = *static_cast<volatile unsigned *>(distance + t);
    const unsigned to = (t + 1) % 64;
    if (mine && to) {
      RIGHT(atomicMax(distance + to, mine + 1); atomicMax(distance + t / 2, 1));
      FAULT(if (distance[to] < mine + 1) distance[to] = mine + 1; if (!distance[t / 2]) distance[t / 2] = 1);
    }
    __syncthreads();
  }
  out[t] = distance[t];
}
