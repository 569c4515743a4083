// Elimination, transforms, shortest paths, joins, compression, search: algorithms in shared memory, right and with a fault.

#include "driver.cuh"
#include "faults.cuh"

// 8 x 8 modulo 2^32, by rows; the pivots are odd.
KERNEL(row_eliminated_while_it_is_the_pivot) {
  __shared__ unsigned a[8][8];
  const unsigned t = threadIdx.x, i = t / 8, j = t % 8;
  a[i][j] = in[t] | (i == j);
  __syncthreads();
  for (unsigned k = 0; k < 7; ++k) {
    const unsigned f = a[i][k], p = a[k][j], own = a[i][j];
    RIGHT(__syncthreads());
    if (i > k) a[i][j] = own * 3 - f * p;
    __syncthreads();
  }
  out[t] = a[i][j];
}

KERNEL(transform_with_half_its_barriers) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (unsigned h = 1; h < 64; h *= 2) {
    const unsigned own = s[t], other = s[t ^ h];
    RIGHT(__syncthreads());
    s[t] = t & h ? other - own : own + other;
    __syncthreads();
  }
  out[t] = s[t];
}

KERNEL(paths_through_the_next_vertex_too_early) {
  __shared__ unsigned d[8][8];
  const unsigned t = threadIdx.x, i = t / 8, j = t % 8;
  d[i][j] = i == j ? 0 : in[t] % 1000 + 1;
  RIGHT(__syncthreads());
  for (unsigned k = 0; k < 8; ++k) {
    const unsigned through = d[i][k] + d[k][j];
    if (through < d[i][j]) d[i][j] = through;
    RIGHT(__syncthreads());
  }
  out[t] = d[i][j];
}

KERNEL(phases_of_a_sort_not_parted) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  s[64 + t] = in[64 + t];
  __syncthreads();
  for (unsigned i = 0; i < 128; ++i) {
    const unsigned at = 2 * t + i % 2;
    if (at < 127 && s[at] > s[at + 1]) {
      const unsigned x = s[at];
      s[at] = s[at + 1];
      s[at + 1] = x;
    }
    RIGHT(__syncthreads());
  }
  FAULT(__syncthreads());
  out[t] = s[t];
  out[64 + t] = s[64 + t];
}

KERNEL(neighbour_at_the_edge_of_a_torus) {
  __shared__ unsigned s[2][64];
  const int t = threadIdx.x;
  s[0][t] = in[t] & 1;
  for (int i = 0; i < 4; ++i) {
    __syncthreads();
    const unsigned *const now = s[i % 2];
    const unsigned around = now[RIGHT((t + 63) % 64) FAULT((t - 1) % 64)] + now[(t + 1) % 64];
    s[1 - i % 2][t] = around == 1;
  }
  out[t] = s[0][t];
}

KERNEL(sums_of_clusters_kept_from_the_last_round) {
  __shared__ unsigned sums[4], counts[4], centre[4];
  const unsigned t = threadIdx.x, x = in[t] % 1000;
  if (t < 4) {
    centre[t] = 250 * t;
    FAULT(sums[t] = counts[t] = 0);
  }
  for (unsigned i = 0; i < 3; ++i) {
    RIGHT(if (t < 4) sums[t] = counts[t] = 0);
    __syncthreads();
    unsigned best = 0;
    for (unsigned c = 1; c < 4; ++c)
      if (abs(static_cast<int>(x - centre[c])) < abs(static_cast<int>(x - centre[best]))) best = c;
    atomicAdd(sums + best, x);
    atomicAdd(counts + best, 1);
    __syncthreads();
    if (t < 4 && counts[t]) centre[t] = sums[t] / counts[t] + i;
  }
  __syncthreads();
  if (t < 4) out[t] = centre[t];
}

KERNEL(table_probed_while_it_is_built) {
  __shared__ unsigned keys[128];
  const unsigned t = threadIdx.x;
  keys[t] = keys[64 + t] = 0;
  __syncthreads();
  unsigned key = in[t] | 1, at = key / 2 % 128;
  while (true) {
    const unsigned was = atomicCAS(keys + at, 0, key);
    if (was == 0 || was == key) break;
    at = (at + 1) % 128;
  }
  RIGHT(__syncthreads());
  key = in[63 - t] | 1;
  at = key / 2 % 128;
  while (keys[at] && keys[at] != key) at = (at + 1) % 128;
  out[t] = keys[at] == key;
}

KERNEL(maximum_of_the_own_warp_taken_for_all) {
  __shared__ unsigned top[2], sums[2];
  const unsigned t = threadIdx.x, x = in[t] % 1000;
  const unsigned m = __reduce_max_sync(ALL, x), s = __reduce_add_sync(ALL, x);
  if (lane() == 0) {
    top[warp()] = m;
    sums[warp()] = s;
  }
  __syncthreads();
  RIGHT(const unsigned most = max(top[0], top[1]));
  FAULT(const unsigned most = m);
  out[t] = (sums[0] + sums[1]) * 2 + most + x;
}

KERNEL(length_of_the_last_run) {
  __shared__ unsigned starts[65], runs;
  const unsigned t = threadIdx.x;
  const unsigned own = in[t] % 2, before = t ? in[t - 1] % 2 : 2;
  __shared__ unsigned heads[2];
  const unsigned ballot = __ballot_sync(ALL, own != before);
  if (lane() == 0) heads[warp()] = ballot;
  __syncthreads();
  const unsigned place = (warp() ? __popc(heads[0]) : 0) + __popc(ballot & ((1u << lane()) - 1));
  if (own != before) starts[place] = t;
  if (t == 0) {
    runs = __popc(heads[0]) + __popc(heads[1]);
    RIGHT(starts[runs] = 64);
  }
  __syncthreads();
  if (t < runs) out[t] = starts[t + 1] - starts[t];
}

KERNEL(end_of_the_last_row) {
  __shared__ unsigned rows[65];
  const unsigned t = threadIdx.x;
  rows[t] = 3 * t;
  RIGHT(if (t == 0) rows[64] = 192);
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = rows[t]; i < min(rows[t + 1], 200u); ++i) sum += in[i];
  out[t] = sum;
}

KERNEL(frontier_read_while_it_grows) {
  __shared__ unsigned queue[64], seen[64], head, tail, level[64];
  const unsigned t = threadIdx.x;
  seen[t] = t == 0;
  level[t] = 0;
  if (t == 0) {
    queue[0] = head = 0;
    tail = 1;
  }
  __syncthreads();
  for (unsigned i = 1; i < 8; ++i) {
    const unsigned first = head, end = tail;
    __syncthreads();
    for (unsigned at = first + t; at < end; at += 64) {
      const unsigned v = queue[at];
      for (unsigned k = 1; k < 3; ++k) {
        const unsigned to = (2 * v + k) % 64;
        if (atomicExch(seen + to, 1) == 0) {
          level[to] = i;
          queue[atomicAdd(&tail, 1)] = to;
        }
      }
    }
    if (t == 0) head = end;
    RIGHT(__syncthreads());
  }
  FAULT(__syncthreads());
  out[t] = level[t];
}

KERNEL(pattern_looked_for_past_the_end) {
  // 4,096 words, 32 for each of 128 threads; the pattern is two words.
  const unsigned t = thread();
  unsigned n = 0;
  for (unsigned i = 32 * t; i < 32 * t + 32; ++i) {
    RIGHT(if (i < 4095))
    n += (in[i] + 3 * in[i + 1]) % 4 == 1;
  }
  atomicAdd(out, n);
}

KERNEL(rows_with_padding_stored_as_vectors) {
  __shared__ alignas(16) unsigned s[8 * RIGHT(36) FAULT(33)];
  const unsigned t = threadIdx.x, i = t / 8, j = t % 8, stride = RIGHT(36) FAULT(33);
  *reinterpret_cast<uint4 *>(s + i * stride + 4 * j) = reinterpret_cast<const uint4 *>(in)[t];
  __syncthreads();
  out[t] = s[j * stride + i] + s[j * stride + 31 - i];
}

KERNEL(digit_scattered_into_its_own_source) {
  __shared__ unsigned s[64], zeros[2];
  const unsigned t = threadIdx.x;
  s[t] = in[t] % 256;
  __syncthreads();
  for (unsigned bit = 0; bit < 8; ++bit) {
    const unsigned x = s[t], one = x >> bit & 1, ballot = __ballot_sync(ALL, !one);
    if (lane() == 0) zeros[warp()] = __popc(ballot);
    RIGHT(__syncthreads());
    FAULT(__syncwarp());
    const unsigned before = (warp() ? zeros[0] : 0) + __popc(ballot & ((1u << lane()) - 1));
    s[one ? (zeros[0] + zeros[1] + t - before) % 64 : before % 64] = x;
    __syncthreads();
  }
  out[t] = s[t];
}

KERNEL(masks_of_both_warps_in_one_word) {
  __shared__ unsigned keep[2];
  const unsigned t = threadIdx.x;
  const unsigned mask = __ballot_sync(ALL, in[t] % 3 != 0);
  if (lane() == 0) keep[RIGHT(warp()) FAULT(0)] = mask;
  FAULT(if (t == 0) keep[1] = mask);
  __syncthreads();
  out[t] = keep[warp()] >> lane() & 1 ? in[t] : 0;
}

KERNEL(second_element_past_the_end) {
  __shared__ unsigned s[96];
  const unsigned t = threadIdx.x;
  for (unsigned i = t; i < RIGHT(96) FAULT(100); i += 64) s[i] = in[i];
  __syncthreads();
  out[t] = s[t] + s[95 - t];
}

KERNEL(swizzled_on_one_side_only) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x, i = t / 8, j = t % 8;
  s[8 * i + (j ^ i)] = in[t];
  __syncthreads();
  out[t] = s[8 * j + RIGHT((i ^ j)) FAULT(i)];
}

KERNEL(ring_masked_where_its_length_is_no_power_of_two) {
  __shared__ unsigned s[12];
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (t < 6) s[RIGHT((6 * i + t) % 12) FAULT((6 * i + t) & 11)] = in[6 * i + t];
    __syncthreads();
    if (t < 6) sum = sum * 3 + s[RIGHT((6 * i + 5 - t) % 12) FAULT((6 * i + 5 - t) & 11)];
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(offset_that_overflows) {
  // Rows 2^30 words apart are folded into the array by their last 12 bits.
  const unsigned t = threadIdx.x, stride = 1 << 30;
  RIGHT(const unsigned long long offset = static_cast<unsigned long long>(t) * stride >> 24);
  FAULT(const unsigned long long offset = t * stride >> 24);
  out[t] = in[offset % 4096 + t];
}
