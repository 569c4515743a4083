// CTAs and warps that wait for each other through memory.

#include "driver.cuh"

__device__ inline unsigned load_acquire(const unsigned *p) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

__device__ inline void store_release(unsigned *p, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

KERNEL(same_value_stored_by_all) {
  const unsigned t = threadIdx.x;
  __shared__ unsigned any;
  if (t == 0) any = 0;
  __syncthreads();
  if (in[t] % 2) any = 1;
  scratch[in[t] % 4] = 7;
  __syncthreads();
  out[thread()] = any + scratch[in[t] % 4];
}

// Returns when every CTA has come `rounds` times.
__device__ inline void meet(unsigned *count, unsigned rounds) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(count, 1);
    while (*reinterpret_cast<volatile unsigned *>(count) < rounds * gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
}

// Who finds a vertex first does not matter: all store the same level.
KERNEL(breadth_first_search) {
  unsigned *level = scratch, *count = scratch + 512;
  const unsigned v = thread();
  if (v == 0) level[0] = 1;
  for (unsigned depth = 1; depth < 5; ++depth) {
    meet(count, 2 * depth - 1);
    const bool mine = level[v] == depth;
    bool unseen[3];
    for (unsigned edge = 0; edge < 3; ++edge) unseen[edge] = level[in[3 * v + edge] % 256] == 0;
    meet(count, 2 * depth);
    for (unsigned edge = 0; edge < 3; ++edge)
      if (mine && unseen[edge]) level[in[3 * v + edge] % 256] = depth + 1;
  }
  meet(count, 9);
  out[v] = level[v];
}

KERNEL(monotone_flags_without_order) {
  // A relaxation that only ever lowers a value may be seen late by anybody.
  const unsigned v = thread();
  for (unsigned i = 0; i < 4; ++i) atomicMin(scratch + in[4 * v + i] % 16, v);
  const volatile unsigned *seen = scratch;
  out[v] = seen[in[v] % 16] <= 0xffffffff;
}

KERNEL(spin_lock_of_warps) {
  __shared__ unsigned lock, count;
  if (threadIdx.x == 0) lock = count = 0;
  __syncthreads();
  if (lane() == 0) {
    while (atomicExch(&lock, 1) != 0) __nanosleep(20);
    __threadfence_block();
    count = count + in[threadIdx.x];
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  out[threadIdx.x] = count;
}

KERNEL(lock_taken_by_cas_released_by_a_store) {
  if (threadIdx.x == 0) {
    while (atomicCAS(scratch, 0, 1) != 0) {
    }
    __threadfence();
    scratch[1] += in[blockIdx.x];
    __threadfence();
    *reinterpret_cast<volatile unsigned *>(scratch) = 0;
  }
  if (threadIdx.x == 0) {
    // The last to add sees the sum.
    __threadfence();
    if (atomicAdd(scratch + 2, 1) == gridDim.x - 1) {
      __threadfence();
      out[0] = scratch[1];
    }
  }
}

KERNEL(ticket_lock) {
  if (threadIdx.x == 0) {
    const unsigned mine = atomicAdd(scratch, 1);
    while (load_acquire(scratch + 1) != mine) {
    }
    scratch[2] = scratch[2] * 3 + 1;
    store_release(scratch + 1, mine + 1);
    if (mine == gridDim.x - 1) out[0] = scratch[2];
  }
}

KERNEL(lock_with_back_off) {
  if (threadIdx.x == 0) {
    unsigned wait = 8;
    while (atomicCAS(scratch, 0, 1)) {
      __nanosleep(wait);
      if (wait < 256) wait *= 2;
    }
    __threadfence();
    scratch[1] += 1;
    __threadfence();
    atomicExch(scratch, 0);
    __threadfence();
    if (atomicAdd(scratch + 2, 1) == gridDim.x - 1) {
      __threadfence();
      out[0] = scratch[1];
    }
  }
}

// A queue lock (MCS): each waits at a word of its own, behind the one that came before.
KERNEL(queue_lock) {
  if (threadIdx.x == 0) {
    unsigned *tail = scratch, *next = scratch + 8, *ready = scratch + 64, me = blockIdx.x + 1;
    const unsigned before = atomicExch(tail, me);
    if (before) {
      store_release(next + before, me);
      while (load_acquire(ready + me) == 0) {
      }
    }
    __threadfence();
    scratch[1] += in[blockIdx.x];
    __threadfence();
    if (atomicCAS(tail, me, 0) != me) {
      unsigned after;
      while ((after = load_acquire(next + me)) == 0) {
      }
      store_release(ready + after, 1);
    }
    __threadfence();
    if (atomicAdd(scratch + 2, 1) == gridDim.x - 1) {
      __threadfence();
      out[0] = scratch[1];
    }
  }
}

KERNEL(readers_and_a_writer) {
  // A sequence lock: readers try again if the writer was there meanwhile.
  volatile unsigned *sequence = scratch, *a = scratch + 1, *b = scratch + 2;
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (unsigned i = 1; i <= 5; ++i) {
      *sequence = 2 * i - 1;
      __threadfence();
      *a = i;
      *b = 10 * i;
      __threadfence();
      *sequence = 2 * i;
    }
    out[0] = 1;
  } else {
    unsigned first, x, y, again;
    do {
      first = *sequence;
      __threadfence();
      x = *a;
      y = *b;
      __threadfence();
      again = *sequence;
    } while (first != again || first % 2);
    out[blockIdx.x] = y == 10 * x;
  }
}

KERNEL(flag_by_release_and_acquire) {
  unsigned *flag = scratch, *data = scratch + 32;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = in[t];
    __syncthreads();
    if (t == 0) store_release(flag, 1);
  } else {
    if (t == 0)
      while (load_acquire(flag) == 0) {
      }
    __syncthreads();
    out[(blockIdx.x - 1) * blockDim.x + t] = data[t];
  }
}

KERNEL(flag_and_value_in_one_word) {
  // No fence: the value travels with the flag, in one access of 8 bytes.
  auto words = reinterpret_cast<volatile unsigned long long *>(scratch);
  const unsigned t = thread();
  words[t] = 1ull << 32 | in[t];
  unsigned long long got;
  do got = words[(t + 37) % (gridDim.x * blockDim.x)];
  while (got >> 32 == 0);
  out[t] = static_cast<unsigned>(got);
}

KERNEL(flag_and_value_in_16_bytes) {
  auto words = reinterpret_cast<uint4 *>(scratch);
  const unsigned t = thread(), n = gridDim.x * blockDim.x;
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(words + t), "r"(in[t]),
               "r"(in[t] + 1), "r"(in[t] + 2), "r"(1)
               : "memory");
  uint4 got;
  do {
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(got.x), "=r"(got.y), "=r"(got.z), "=r"(got.w)
                 : "l"(words + (t + 45) % n)
                 : "memory");
  } while (got.w == 0);
  out[t] = got.x + got.y + got.z;
}

// A scan of all CTAs' sums in one pass, a warp looking back 32 tiles at a time.
KERNEL(decoupled_look_back) {
  __shared__ unsigned s[64], tile_of, before;
  auto status = reinterpret_cast<volatile unsigned long long *>(scratch + 2);
  const unsigned t = threadIdx.x;
  if (t == 0) tile_of = atomicAdd(scratch, 1);
  __syncthreads();
  const unsigned tile = tile_of;
  s[t] = in[tile * 64 + t] % 100;
  for (unsigned step = 1; step < 64; step *= 2) {
    __syncthreads();
    const unsigned left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
  }
  __syncthreads();
  const unsigned sum = s[63];
  if (t == 0) status[tile] = (tile ? 1ull : 2ull) << 32 | sum;
  if (t < 32 && tile > 0) {
    unsigned total = 0;
    for (int end = tile - 1;; end -= 32) {
      const int at = end - static_cast<int>(t);
      unsigned long long word;
      do word = at >= 0 ? status[at] : 2ull << 32;
      while (__any_sync(ALL, word >> 32 == 0));
      const unsigned done = __ballot_sync(ALL, word >> 32 == 2);
      const unsigned upto = done ? __ffs(done) - 1 : 31;
      total += __reduce_add_sync(ALL, t <= upto ? static_cast<unsigned>(word) : 0);
      if (done) break;
    }
    if (t == 0) {
      before = total;
      status[tile] = 2ull << 32 | (total + sum);
    }
  }
  if (t == 0 && tile == 0) before = 0;
  __syncthreads();
  out[tile * 64 + t] = before + s[t];
}

KERNEL(last_cta_reduces) {
  __shared__ bool last;
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  __syncthreads();
  for (unsigned half = 32; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) {
    scratch[1 + blockIdx.x] = s[0];
    __threadfence();
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  unsigned sum = 0;
  for (unsigned i = t; i < gridDim.x; i += 64) sum += *reinterpret_cast<volatile unsigned *>(scratch + 1 + i);
  s[t] = sum;
  __syncthreads();
  if (t == 0) {
    for (unsigned i = 1; i < 64; ++i) sum += s[i];
    out[0] = sum;
    scratch[0] = 0;
  }
}

KERNEL(persistent_ctas_take_tiles) {
  __shared__ unsigned tile;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) tile = atomicAdd(scratch, 1);
    __syncthreads();
    if (tile >= 13) break;
    out[tile * 64 + threadIdx.x] = in[tile * 64 + threadIdx.x] * 3;
  }
}

KERNEL(persistent_ctas_prefetch_the_next_tile) {
  __shared__ unsigned next[2];
  unsigned at = 0;
  if (threadIdx.x == 0) next[0] = atomicAdd(scratch, 1);
  __syncthreads();
  for (unsigned tile = next[0]; tile < 13; tile = next[at]) {
    if (threadIdx.x == 0) next[at ^ 1] = atomicAdd(scratch, 1);
    out[tile * 64 + threadIdx.x] = in[tile * 64 + threadIdx.x] + 11;
    at ^= 1;
    __syncthreads();
  }
}

KERNEL(work_stealing_queues) {
  // Each CTA empties its own queue from the front, then the others'.
  __shared__ unsigned task;
  unsigned *heads = scratch;
  for (unsigned victim = 0; victim < gridDim.x; ++victim) {
    const unsigned queue = (blockIdx.x + victim) % gridDim.x, tasks = 2 + 3 * queue;
    while (true) {
      __syncthreads();
      if (threadIdx.x == 0) task = atomicAdd(heads + queue, 1);
      __syncthreads();
      if (task >= tasks) break;
      atomicAdd(out + queue, threadIdx.x == 0 ? 100 + task : 0);
    }
  }
}

KERNEL(split_k_turns_in_order) {
  // CTAs add to one tile in the order of their numbers: the result is the same each time.
  const unsigned t = threadIdx.x;
  if (t == 0)
    while (load_acquire(scratch) != blockIdx.x) {
    }
  __syncthreads();
  float *sum = reinterpret_cast<float *>(scratch + 32);
  const float mine = sum[t] * 0.5f + in[thread()] % 1000;
  sum[t] = mine;
  if (blockIdx.x == gridDim.x - 1) out[t] = __float_as_uint(mine);
  __syncthreads();
  if (t == 0) store_release(scratch, blockIdx.x + 1);
}

KERNEL(sense_reversing_barrier) {
  unsigned *count = scratch, *sense = scratch + 1, *data = scratch + 32;
  const unsigned n = gridDim.x * blockDim.x;
  for (unsigned round = 0; round < 3; ++round) {
    data[thread()] = in[thread()] + round;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      if (atomicAdd(count, 1) == gridDim.x - 1) {
        *count = 0;
        __threadfence();
        *reinterpret_cast<volatile unsigned *>(sense) = round + 1;
      } else {
        while (*reinterpret_cast<volatile unsigned *>(sense) != round + 1) {
        }
      }
      __threadfence();
    }
    __syncthreads();
    out[thread()] = data[n - 1 - thread()];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(scratch + 2, 1);
      while (load_acquire(scratch + 2) < (round + 1) * gridDim.x) {
      }
    }
    __syncthreads();
  }
}

KERNEL(producer_and_consumer_by_named_barriers) {
  // Two slots; `bar.arrive` by one side, `bar.sync` by the other.
  __shared__ unsigned slots[2][64];
  const unsigned t = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (unsigned i = 0; i < 6; ++i) {
      asm volatile("bar.sync %0, 128;" ::"r"(1 + i % 2) : "memory");
      slots[i % 2][t] = in[i * 64 + t];
      asm volatile("bar.arrive %0, 128;" ::"r"(3 + i % 2) : "memory");
    }
  } else {
    unsigned sum = 0;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
    asm volatile("bar.arrive 2, 128;" ::: "memory");
    for (unsigned i = 0; i < 6; ++i) {
      asm volatile("bar.sync %0, 128;" ::"r"(3 + i % 2) : "memory");
      sum += slots[i % 2][63 - t];
      if (i < 4) asm volatile("bar.arrive %0, 128;" ::"r"(1 + i % 2) : "memory");
    }
    out[t] = sum;
  }
}

KERNEL(hash_table_by_cas) {
  const unsigned t = thread(), key = in[t] % 40 + 1;
  unsigned at = key * 7 % 64;
  while (true) {
    const unsigned held = atomicCAS(scratch + at, 0, key);
    if (held == 0 || held == key) break;
    at = (at + 1) % 64;
  }
  atomicAdd(out + key, 1);
}

KERNEL(list_by_cas) {
  // A stack of nodes: pushed by all, and walked by the last.
  unsigned *head = scratch, *next = scratch + 64;
  const unsigned node = thread() + 1;
  unsigned top = *reinterpret_cast<volatile unsigned *>(head), seen;
  while (true) {
    next[node] = top;
    __threadfence();
    seen = atomicCAS(head, top, node);
    if (seen == top) break;
    top = seen;
  }
  __threadfence();
  if (atomicAdd(scratch + 1, 1) == gridDim.x * blockDim.x - 1) {
    __threadfence();
    unsigned sum = 0;
    for (unsigned at = *head; at; at = *reinterpret_cast<volatile unsigned *>(next + at)) sum += at;
    out[0] = sum;
  }
}

KERNEL(float_maximum_by_cas) {
  const float mine = __uint_as_float(in[thread()] % 1000 << 16);
  unsigned old = *reinterpret_cast<volatile unsigned *>(out), seen;
  while (__uint_as_float(old) < mine) {
    seen = atomicCAS(out, old, __float_as_uint(mine));
    if (seen == old) break;
    old = seen;
  }
}
