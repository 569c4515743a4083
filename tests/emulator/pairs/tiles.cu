// Tiles, rows and images: ordinary kernels with an index, a size or a barrier that is wrong.

#include "driver.cuh"
#include "faults.cuh"
#include <cuda_pipeline_primitives.h>

KERNEL(buffer_written_that_is_still_read) {
  __shared__ unsigned s[2][64];
  const unsigned t = threadIdx.x;
  s[0][t] = in[t];
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    RIGHT(if (i < 3) s[(i + 1) % 2][t] = in[64 * (i + 1) + t]);
    sum = sum * 3 + s[i % 2][63 - t];
    FAULT(if (i < 3) s[i % 2][t] = in[64 * (i + 1) + t]);
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(last_row_taken_for_a_whole_one) {
  // 81 rows of 50 words, and 46 words.
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned row = t; row < 82; row += 64) {
    const unsigned *const x = in + 50 * row;
    RIGHT(const unsigned n = min(50, 4096 - 50 * row));
    FAULT(const unsigned n = 50);
    for (unsigned i = 0; i < n; ++i) sum += x[i];
  }
  atomicAdd(out, sum);
}

KERNEL(halo_clamped_one_too_far) {
  const unsigned t = thread();
  const int last = 4095 + FAULT(1) RIGHT(0), at = 4096 - 128 + t;
  out[t] = in[min(at + 1, last)] - in[at];
}

KERNEL(second_array_inside_the_first) {
  extern __shared__ unsigned memory[];
  unsigned *const a = memory, *const b = memory + RIGHT(64) FAULT(48);
  const unsigned t = threadIdx.x;
  a[t] = in[t];
  b[t] = in[64 + t];
  __syncthreads();
  out[t] = a[63 - t] * 3 + b[(t + 1) % 64];
}

KERNEL(sorted_with_a_barrier_too_few) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  s[t + 64] = in[t + 64];
  for (unsigned size = 2; size <= 128; size *= 2)
    for (unsigned step = size / 2; step > 0; step /= 2) {
      RIGHT(__syncthreads());
      FAULT(if (step >= 32) __syncthreads());
      const unsigned a = 2 * t - (t & (step - 1)), b = a + step;
      const bool up = !(a & size);
      if ((s[a] > s[b]) == up) {
        const unsigned x = s[a];
        s[a] = s[b];
        s[b] = x;
      }
    }
  __syncthreads();
  out[t] = s[t];
  out[t + 64] = s[t + 64];
}

KERNEL(maximum_cleared_while_it_grows) {
  __shared__ unsigned greatest;
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < 3; ++i) {
    if (t == 0) greatest = 0;
    RIGHT(__syncthreads());
    atomicMax(&greatest, in[64 * i + t]);
    __syncthreads();
    sum = sum * 3 + greatest;
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(edge_of_an_image_not_guarded) {
  // 60 x 68 words in tiles of 8 x 8.
  const unsigned x = blockIdx.x % 8 * 8 + threadIdx.x % 8, y = blockIdx.x / 8 * 8 + threadIdx.x / 8;
  RIGHT(if (x < 60 && y < 68)) FAULT(if (x < 60)) out[y * 60 + x] = in[y * 60 + (59 - x)];
}

KERNEL(wide_counter_at_an_odd_word) {
  __shared__ alignas(8) unsigned s[6];
  const unsigned t = threadIdx.x;
  if (t < 6) s[t] = 0;
  __syncthreads();
  atomicAdd(reinterpret_cast<unsigned long long *>(s + RIGHT(2) FAULT(3)), 1ull << 32 | in[t] % 100);
  __syncthreads();
  if (t == 0) out[0] = s[2], out[1] = s[3];
}

KERNEL(halves_of_a_word_set_by_reading_it) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 32) s[t] = 0;
  __syncthreads();
  RIGHT(reinterpret_cast<unsigned short *>(s)[t] = in[t]);
  FAULT(s[t / 2] |= (in[t] & 0xffff) << 16 * (t % 2));
  __syncthreads();
  if (t < 32) out[t] = s[t];
}

KERNEL(row_of_a_tile_normalised_by_another_row) {
  __shared__ unsigned s[4][32], sums[4];
  const unsigned l = lane(), w = warp();
  const unsigned x = in[32 * w + l] % 100;
  s[w][l] = x;
  const unsigned sum = __reduce_add_sync(ALL, x);
  if (l == 0) sums[w] = sum;
  RIGHT(__syncwarp());
  FAULT(if (w == 99) __syncwarp());
  out[32 * w + l] = s[w][31 - l] * 1000 + sums[RIGHT(w) FAULT((w + 1) % 4)];
}

KERNEL(last_tile_filled_with_what_lies_behind) {
  // 100 words in tiles of 64, of the last 36 are left: the rest is filled with zeros.
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < 4096; i += 4060) {
    if (t < 16) {
      const unsigned at = i + 4 * t, left = at < 4096 ? min(4u, 4096 - at) : 0;
      RIGHT(__pipeline_memcpy_async(s + 4 * t, in + (left ? at : 0), 16, 16 - 4 * left));
      FAULT(__pipeline_memcpy_async(s + 4 * t, in + at, 16));
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[63 - t];
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(barrier_in_a_loop_of_as_many_trips_as_the_warp) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < 4 FAULT(+warp()); ++i) {
    s[t] = in[64 * i + t];
    __syncthreads();
    sum = sum * 3 + s[63 - t];
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(counters_of_which_the_last_is_not_cleared) {
  unsigned counts[4];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < RIGHT(4) FAULT(3); ++i) counts[i] = 0;
  for (unsigned row = 0; row < 8; ++row) counts[in[64 * row + t] % 4] += row;
  out[t] = counts[in[t] / 4 % 4];
}

KERNEL(index_that_wraps_at_65536) {
  const unsigned t = threadIdx.x;
  RIGHT(const unsigned at = t * 1050);
  FAULT(const unsigned short at = t * 1050);
  out[t] = in[at / 64] + (at >= 65536 ? 1 : 0);
}

KERNEL(half_of_the_threads_load_a_tile) {
  __shared__ unsigned s[128];
  const unsigned t = threadIdx.x;
  for (unsigned i = t; i < RIGHT(128) FAULT(96); i += 64) s[i] = in[i];
  __syncthreads();
  out[t] = s[t] + s[127 - t];
}
