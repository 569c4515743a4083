// Reductions, scans, histograms, tiles: what threads of a block do together, right and with a fault.

#include "driver.cuh"
#include "faults.cuh"

// Reductions.

KERNEL(tree_reduction) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (unsigned half = 64; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    RIGHT(__syncthreads());
  }
  FAULT(__syncthreads());
  if (t == 0) out[0] = s[0];
}

KERNEL(unrolled_last_warp) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 32) {
    unsigned sum = s[t] + s[t + 32];
    for (unsigned half = 16; half > 0; half /= 2) {
      s[t] = sum;
      RIGHT(__syncwarp());
      sum += s[(t + half) % 32];
      RIGHT(__syncwarp());
    }
    if (t == 0) out[0] = sum;
  }
}

KERNEL(barrier_in_the_branch_of_a_reduction) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (unsigned half = 32; half > 0; half /= 2) {
    if (t < half) {
      s[t] += s[t + half];
      FAULT(__syncthreads());
    }
    RIGHT(__syncthreads());
  }
  if (t == 0) out[0] = s[0];
}

__device__ unsigned sum_of_block(unsigned x) {
  __shared__ unsigned s[2];
  for (unsigned half = 16; half > 0; half /= 2) x += __shfl_down_sync(ALL, x, half);
  if (lane() == 0) s[warp()] = x;
  __syncthreads();
  const unsigned sum = s[0] + s[1];
  RIGHT(__syncthreads());
  return sum;
}

KERNEL(two_reductions_with_one_buffer) {
  const unsigned t = threadIdx.x;
  const unsigned first = sum_of_block(in[t]), second = sum_of_block(in[64 + t] * 3);
  out[t] = first ^ second;
}

KERNEL(shuffle_in_half_a_warp) {
  const unsigned t = threadIdx.x;
  unsigned x = in[t];
  if (lane() < 16) {
    RIGHT(x += __shfl_xor_sync(0xffff, x, 8));
    FAULT(x += __shfl_xor_sync(ALL, x, 8));
  }
  out[t] = x;
}

KERNEL(shuffle_from_a_lane_that_left) {
  const unsigned t = threadIdx.x;
  unsigned x = in[t];
  RIGHT(x += __shfl_down_sync(ALL, x, 20));
  FAULT(if (lane() < 20) x += __shfl_down_sync(0xfffff, x, 12));
  out[t] = lane() < 12 ? x : 0;
}

KERNEL(accumulator_that_nobody_cleared) {
  __shared__ unsigned sum;
  const unsigned t = threadIdx.x;
  RIGHT(if (t == 0) sum = 0);
  __syncthreads();
  atomicAdd(&sum, in[t]);
  __syncthreads();
  out[t] = sum;
}

KERNEL(greatest_and_its_index) {
  __shared__ unsigned long long best;
  __shared__ unsigned greatest, index;
  const unsigned t = threadIdx.x, x = in[t];
  if (t == 0) best = 0, greatest = 0, index = 0;
  __syncthreads();
  RIGHT(atomicMax(&best, static_cast<unsigned long long>(x) << 32 | t));
  FAULT(if (atomicMax(&greatest, x) < x) index = t);
  __syncthreads();
  RIGHT(if (t == 0) out[0] = best >> 32, out[1] = static_cast<unsigned>(best));
  FAULT(if (t == 0) out[0] = greatest, out[1] = index);
}

// Scans.

KERNEL(scan_in_one_buffer) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  for (unsigned step = 1; step < 64; step *= 2) {
    __syncthreads();
    const unsigned x = t >= step ? s[t - step] : 0;
    RIGHT(__syncthreads());
    s[t] += x;
  }
  out[t] = s[t];
}

KERNEL(scan_in_two_buffers) {
  __shared__ unsigned s[2][64];
  const unsigned t = threadIdx.x;
  unsigned from = 0;
  s[0][t] = in[t];
  __syncthreads();
  for (unsigned step = 1; step < 64; step *= 2) {
    const unsigned to = RIGHT(1 -) from;
    s[to][t] = s[from][t] + (t >= step ? s[from][t - step] : 0);
    from = to;
    __syncthreads();
  }
  out[t] = s[from][t];
}

KERNEL(scan_up_and_down) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (unsigned step = 1; step < 64; step *= 2) {
    const unsigned at = (t + 1) * step * 2 - 1;
    if (at < 64) s[at] += s[at - step];
    __syncthreads();
  }
  for (unsigned step = 16; step > 0; step /= 2) {
    const unsigned at = (t + 1) * step * 2 - 1;
    if (at + step < 64) s[at + step] += s[at];
    RIGHT(__syncthreads());
  }
  FAULT(__syncthreads());
  out[t] = s[t];
}

KERNEL(sums_of_warps_scanned) {
  __shared__ unsigned sums[4];
  const unsigned t = threadIdx.x;
  unsigned x = in[t];
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned y = __shfl_up_sync(ALL, x, step);
    if (lane() >= step) x += y;
  }
  if (lane() == 31) sums[warp()] = x;
  RIGHT(__syncthreads());
  for (unsigned w = 0; w < warp(); ++w) x += sums[w];
  out[t] = x;
}

KERNEL(exclusive_scan_by_a_read_before_the_first) {
  __shared__ unsigned other[4], s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  if (t < 4) other[t] = t;
  __syncthreads();
  RIGHT(out[t] = t ? s[t - 1] : 0);
  FAULT(out[t] = s[static_cast<int>(t) - 1]);
  if (t < 4) out[64 + t] = other[t];
}

// Histograms.

KERNEL(bins_cleared_without_a_barrier) {
  __shared__ unsigned bins[64];
  const unsigned t = threadIdx.x;
  bins[t] = 0;
  RIGHT(__syncthreads());
  for (unsigned i = t; i < 256; i += 64) atomicAdd(bins + in[i] % 64, 1);
  __syncthreads();
  out[t] = bins[t];
}

KERNEL(bins_without_atomics) {
  __shared__ unsigned bins[16];
  const unsigned t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  RIGHT(atomicAdd(bins + in[t] % 16, 1));
  FAULT(bins[in[t] % 16]++);
  __syncthreads();
  if (t < 16) out[t] = bins[t];
}

KERNEL(bins_of_each_warp) {
  __shared__ unsigned bins[2][32];
  const unsigned t = threadIdx.x;
  bins[warp()][lane()] = 0;
  __syncwarp();
  for (unsigned i = lane(); i < 128; i += 32) atomicAdd(&bins[warp()][in[128 * warp() + i] % 32], 1);
  RIGHT(__syncthreads());
  FAULT(__syncwarp());
  if (t < 32) out[t] = bins[0][t] + bins[1][t];
}

KERNEL(more_bins_than_threads) {
  __shared__ unsigned bins[96];
  const unsigned t = threadIdx.x;
  RIGHT(for (unsigned i = t; i < 96; i += 64) bins[i] = 0);
  FAULT(bins[t] = 0);
  __syncthreads();
  for (unsigned i = t; i < 256; i += 64) atomicAdd(bins + in[i] % 96, 1);
  __syncthreads();
  for (unsigned i = t; i < 96; i += 64) out[i] = bins[i];
}

KERNEL(a_bin_too_few) {
  __shared__ unsigned bins[32];
  const unsigned t = threadIdx.x;
  if (t < 32) bins[t] = 0;
  __syncthreads();
  const unsigned bin = t == 7 ? 32 : in[t] % 32;
  RIGHT(if (bin < 32)) atomicAdd(bins + bin, 1);
  __syncthreads();
  if (t < 32) out[t] = bins[t];
}

KERNEL(counters_of_bytes) {
  __shared__ unsigned char seen[64];
  __shared__ unsigned words[16];
  const unsigned t = threadIdx.x, bit = in[t] % 2;
  if (t < 16) words[t] = 0;
  __syncthreads();
  RIGHT(seen[t] = bit);
  FAULT(words[t / 4] |= bit << 8 * (t % 4));
  __syncthreads();
  RIGHT(out[t] = seen[63 - t]);
  FAULT(out[t] = words[(63 - t) / 4] >> 8 * ((63 - t) % 4) & 255);
}

// Tiles.

KERNEL(stencil_with_a_late_halo) {
  __shared__ unsigned s[66];
  const unsigned t = threadIdx.x;
  s[t + 1] = in[t + 1];
  RIGHT(if (t < 2) s[t * 65] = in[t * 65]);
  __syncthreads();
  FAULT(if (t < 2) s[t * 65] = in[t * 65]);
  out[t] = s[t] + s[t + 1] + s[t + 2];
}

KERNEL(stencil_over_the_edge) {
  const unsigned t = threadIdx.x;
  const int left = static_cast<int>(t) - 1;
  unsigned sum = in[t];
  RIGHT(if (left >= 0)) sum += in[left];
  out[t] = sum;
}

KERNEL(tile_transposed) {
  __shared__ unsigned s[16][17];
  const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
  s[y][x] = in[threadIdx.x];
  RIGHT(__syncthreads());
  out[threadIdx.x] = s[x][y];
}

KERNEL(tiles_multiplied) {
  __shared__ unsigned a[8][8], b[8][8];
  const unsigned x = threadIdx.x % 8, y = threadIdx.x / 8;
  unsigned sum = 0;
  for (unsigned k = 0; k < 32; k += 8) {
    a[y][x] = in[32 * y + k + x];
    b[y][x] = in[256 + 8 * (k + y) + x];
    __syncthreads();
    for (unsigned i = 0; i < 8; ++i) sum += a[y][i] * b[i][x];
    RIGHT(__syncthreads());
  }
  out[threadIdx.x] = sum;
}

KERNEL(tile_with_a_row_too_many) {
  __shared__ unsigned a[8][8], b[8][8];
  const unsigned x = threadIdx.x % 8, y = threadIdx.x / 8;
  a[y][x] = in[threadIdx.x];
  b[y][x] = in[64 + threadIdx.x];
  __syncthreads();
  unsigned sum = 0;
  const unsigned rows = 8 FAULT(+(out[4000] == 0));
  for (unsigned i = 0; i < rows; ++i) sum += a[i][x] * (i < 8 ? b[y][i] : 1);
  out[threadIdx.x] = sum;
}

KERNEL(smoothed_in_place) {
  const unsigned t = thread();
  RIGHT(unsigned *const to = out);
  FAULT(unsigned *const to = scratch);
  if (t >= 128) return;
  RIGHT(to[t] = in[t] + in[(t + 1) % 128]);
  FAULT(to[t] += to[(t + 1) % 128] + in[t]);
  FAULT(out[t] = to[t]);
}

KERNEL(vector_load_of_a_shifted_pointer) {
  const unsigned t = threadIdx.x;
  const uint4 x = *reinterpret_cast<const uint4 *>(in + 4 * t FAULT(+2));
  out[t] = x.x + x.y + x.z + x.w;
}

KERNEL(memory_of_two_phases) {
  __shared__ union {
    unsigned words[64];
    unsigned short halves[128];
  } s;
  const unsigned t = threadIdx.x;
  s.words[t] = in[t];
  __syncthreads();
  const unsigned x = s.words[63 - t];
  RIGHT(__syncthreads());
  s.halves[t] = x;
  __syncthreads();
  out[t] = s.halves[63 - t];
}

KERNEL(counter_read_before_all_have_added) {
  __shared__ unsigned count;
  const unsigned t = threadIdx.x;
  if (t == 0) count = 0;
  __syncthreads();
  if (in[t] % 2) atomicAdd(&count, 1);
  RIGHT(__syncthreads());
  out[t] = count;
}

KERNEL(compacted_by_a_counter) {
  __shared__ unsigned s[64], count;
  const unsigned t = threadIdx.x;
  if (t == 0) count = 0;
  RIGHT(s[t] = 0);
  __syncthreads();
  if (in[t] % 2) s[atomicAdd(&count, 1)] = 1;
  __syncthreads();
  RIGHT(out[t] = s[t]);
  FAULT(out[t] = s[t] == 1 ? 1 : 0);
}

KERNEL(local_array_too_short) {
  unsigned queue[8], tail = 0;
  const unsigned t = threadIdx.x, count = scratch[0] + 8 FAULT(+4);
  for (unsigned i = 0; i < count; ++i) queue[tail++] = in[(t + i * in[0]) % 64];
  unsigned sum = 0;
  for (unsigned i = 0; i < tail; ++i) sum = sum * 3 + queue[(i + in[1]) % tail];
  out[t] = sum;
}

KERNEL(address_of_a_local_variable_shared) {
  __shared__ unsigned *where[64];
  __shared__ unsigned value[64];
  const unsigned t = threadIdx.x;
  unsigned own = in[t];
  RIGHT(value[t] = own; where[t] = value + t);
  FAULT(where[t] = &own);
  __syncthreads();
  out[t] = *where[63 - t];
}

KERNEL_OF(__launch_bounds__(64), dynamic_memory_too_small) {
  extern __shared__ unsigned d[];
  const unsigned t = threadIdx.x;
  d[t] = in[t];
  RIGHT(if (t < 32)) d[64 + t] = in[64 + t];
  __syncthreads();
  out[t] = d[63 - t] + d[64 + t % 32];
}
