// Lanes that part, leave early, and meet at places of their own.

#include "driver.cuh"

KERNEL(exit_before_a_loop_of_barriers) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  if (t >= 70) return;
  for (unsigned i = 0; i < 4; ++i) {
    s[t] = in[t] + i;
    __syncthreads();
    out[t] = s[69 - t];
    __syncthreads();
  }
}

KERNEL(warp_exits_between_two_barriers) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (warp() == 1) {
    out[t] = 1;
    return;
  }
  const unsigned got = s[127 - t];
  __syncthreads();
  s[t] = got;
  __syncthreads();
  out[t] = s[t];
}

KERNEL(lane_0_exits_before_a_vote) {
  if (lane() == 0) return;
  const unsigned votes = __ballot_sync(ALL & ~1u, in[threadIdx.x] & 1);
  out[threadIdx.x] = votes;
}

KERNEL(halves_shuffle_by_themselves) {
  const unsigned t = threadIdx.x, half = lane() < 16 ? 0x0000ffff : 0xffff0000;
  unsigned value = in[t];
  if (lane() < 16) {
    for (int step = 8; step > 0; step /= 2) value += __shfl_xor_sync(half, value, step);
  } else {
    for (int step = 1; step < 16; step *= 2) value ^= __shfl_xor_sync(half, value, step);
  }
  out[t] = value;
}

KERNEL(loop_of_as_many_turns_as_the_lane) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i <= lane(); ++i) {
    if (i == 7) continue;
    sum += in[(t + i) % 64];
    if (sum % 11 == 3) break;
  }
  s[t] = sum;
  __syncthreads();
  out[t] = s[63 - t];
}

KERNEL(syncwarp_between_divergent_paths) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 8) {
    s[t] = in[t];
    __syncwarp(0x0000ffff);
    out[t] = s[t + 8];
  } else if (t < 16) {
    s[t] = in[t] + 1;
    __syncwarp(0x0000ffff);
    out[t] = s[t - 8];
  } else {
    out[t] = t;
  }
}

KERNEL(syncwarp_in_a_loop_of_some_lanes) {
  __shared__ volatile unsigned s[32];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncwarp();
  const unsigned mask = __ballot_sync(ALL, t % 3 != 0);
  if (t % 3 != 0) {
    for (int i = 0; i < 3; ++i) {
      const unsigned left = s[t % 3 == 1 ? t + (t < 31) : t - 1];
      __syncwarp(mask);
      s[t] = left + 1;
      __syncwarp(mask);
    }
  }
  __syncwarp();
  out[t] = s[t];
}

KERNEL(leader_of_the_active_lanes_adds) {
  const unsigned t = threadIdx.x;
  if (in[t] % 3 == 0) {
    const unsigned active = __activemask();
    const int leader = __ffs(active) - 1;
    unsigned first = 0;
    if (lane() == leader) first = atomicAdd(scratch, __popc(active));
    first = __shfl_sync(active, first, leader);
    // Whatever the lanes' groups are, each gets a number of its own.
    scratch[1 + first + __popc(active & ((1u << lane()) - 1))] = t;
  }
  __syncthreads();
  if (t == 0) {
    unsigned seen[2] = {};
    for (unsigned i = 0; i < scratch[0]; ++i) seen[scratch[1 + i] / 32] |= 1u << scratch[1 + i] % 32;
    out[0] = seen[0];
    out[1] = seen[1];
  }
}

KERNEL(groups_of_equal_values) {
  const unsigned t = threadIdx.x, value = in[t] % 5;
  const unsigned same = __match_any_sync(ALL, value);
  int all;
  const unsigned every = __match_all_sync(ALL, t < 32 ? 9 : value, &all);
  unsigned sum = 0;
  if (all) {
    sum = __reduce_add_sync(same, t);
  } else {
    sum = __reduce_max_sync(same, t);
  }
  out[t] = same ^ sum ^ every;
}

KERNEL(votes_by_masks_of_parity) {
  const unsigned t = threadIdx.x, mine = lane() % 2 ? 0xaaaaaaaa : 0x55555555;
  const int any = __any_sync(mine, in[t] % 4 == 0), all = __all_sync(mine, in[t] < 0x80000000);
  const int uniform = __all_sync(mine, in[t] & 1) || !__any_sync(mine, in[t] & 1);
  out[t] = any | all << 1 | uniform << 2 | __reduce_or_sync(mine, t) << 8;
}

KERNEL(elected_lane_writes) {
  unsigned leader, elected;
  asm volatile(
      "{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.b32 %1, 1, 0, p; }"
      : "=r"(leader), "=r"(elected));
  const unsigned one = __shfl_sync(ALL, elected ? lane() : 0, leader);
  if (elected) out[warp()] = in[threadIdx.x - lane() + leader] + (one == leader);
}

KERNEL(barrier_for_some_warps) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  if (warp() < 2) {
    s[t] = in[t];
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[63 - t];
  } else {
    s[t] = in[t] + 1;
    asm volatile("barrier.sync 2, 64;" ::: "memory");
    out[t] = s[191 - t];
  }
}

KERNEL(barrier_with_a_vote) {
  const unsigned t = threadIdx.x;
  const int count = __syncthreads_count(in[t] & 1);
  const int some = __syncthreads_or(in[t] % 64 == 5), every = __syncthreads_and(t < 128);
  out[t] = count << 2 | some << 1 | every;
}

KERNEL(unaligned_barrier_by_part_of_a_warp) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  if (in[t] & 1)
    asm volatile("barrier.sync 0;" ::: "memory");
  else
    asm volatile("barrier.sync 0;" ::: "memory");
  out[t] = s[63 - t];
}

KERNEL(barrier_in_a_branch_of_all) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 3; ++i) {
    if (in[64] & (1 << i)) {
      s[t] = in[t] + i;
      __syncthreads();
      out[t] += s[63 - t];
      __syncthreads();
    }
  }
}

__device__ __noinline__ unsigned collatz(unsigned n) {
  unsigned steps = 0;
  while (n != 1 && steps < 20) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    ++steps;
    if (steps == 19) return 99;
  }
  return steps;
}

KERNEL(function_with_several_returns) {
  const unsigned t = threadIdx.x;
  unsigned got = 0;
  if (in[t] % 2) got = collatz(in[t] % 30 + 1);
  __syncwarp();
  out[t] = got + __shfl_down_sync(ALL, got, 1, 8);
}

KERNEL(switch_with_fall_through) {
  const unsigned t = threadIdx.x;
  unsigned x = in[t];
  switch (x % 9) {
    case 0: x += 5;
    case 1: x *= 3; break;
    case 2: x ^= 77;
    case 3:
    case 4: x -= t; break;
    case 7: x = ~x;
    default: x += 1;
  }
  out[t] = x;
}

KERNEL(goto_into_a_common_tail) {
  const unsigned t = threadIdx.x;
  unsigned x = in[t], tries = 0;
again:
  if (x % 5 == 0) goto done;
  x = x * 5 / 4 + 1;
  if (++tries < 6) goto again;
  if (x % 2) x += __popc(__activemask()) > 0;
done:
  out[t] = x + tries;
}

KERNEL(queue_of_the_lanes_that_have_work) {
  // Lanes leave the loop one by one; those that stay share what is left.
  const unsigned t = threadIdx.x;
  unsigned rest = in[t] % 13, mine = 0;
  while (unsigned busy = __ballot_sync(ALL, rest > 0)) {
    const int from = __ffs(busy) - 1;
    mine += __shfl_sync(ALL, rest, from) * (lane() + 1);
    if (static_cast<int>(lane()) == from) rest = 0;
  }
  out[t] = mine;
}

KERNEL(lane_mask_registers) {
  unsigned eq, lt, le, gt, ge, id;
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(id));
  out[threadIdx.x] = (eq == 1u << id && (lt | eq) == le && (gt | eq) == ge && (lt ^ ge) == ALL)
                         ? lt + warpSize
                         : 0;
}
