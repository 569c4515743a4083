// Lanes, masks, widths and alignments; atomics of halves and floats; matrices by their rows, right and with a fault.

#include "driver.cuh"
#include "faults.cuh"

KERNEL(sum_of_lanes_before_the_first) {
  const unsigned l = threadIdx.x;
  unsigned x = in[l];
  for (unsigned d = 1; d < 32; d *= 2) {
    const unsigned before = __shfl_up_sync(ALL, x, d);
    RIGHT(if (l >= d)) x += before;
  }
  out[l] = x;
}

KERNEL(width_of_a_shuffle_forgotten) {
  const unsigned l = threadIdx.x;
  unsigned x = in[l];
  for (unsigned d = 4; d; d /= 2) x += __shfl_down_sync(ALL, x, d RIGHT(, 8));
  x = __shfl_sync(ALL, x, 0 RIGHT(, 8));
  out[l] = x;
}

// The least of 64 floats of both signs.
KERNEL(floats_compared_as_integers) {
  const unsigned t = threadIdx.x;
  const float x = static_cast<float>(in[t] % 100) - 50;
  const int bits = __float_as_int(x);
  __shared__ int least;
  if (t == 0) least = 0x7fffffff;
  __syncthreads();
  RIGHT(atomicMin(&least, bits < 0 ? bits ^ 0x7fffffff : bits));
  FAULT(atomicMin(&least, bits));
  __syncthreads();
  const int y = RIGHT(least < 0 ? least ^ 0x7fffffff :) least;
  if (t == 0) out[0] = static_cast<unsigned>(static_cast<int>(__int_as_float(y)) + 50);
}

KERNEL(compare_and_swap_with_what_was_read_once) {
  const unsigned t = threadIdx.x, x = in[t] % 64;
  unsigned was = scratch[0];
  for (;;) {
    const unsigned now = atomicCAS(scratch, was, was * 3 + x - was * 2);
    if (now == was) break;
    RIGHT(was = now);
  }
  __syncthreads();
  if (t == 0) out[0] = atomicAdd(scratch, 0);
}

KERNEL(pair_of_halves_added_at_an_odd_half) {
  __shared__ alignas(4) unsigned short s[66];
  const unsigned t = threadIdx.x;
  s[t] = 0;
  if (t < 2) s[64 + t] = 0;
  __syncthreads();
  unsigned short *const at = s + t / 2 * 2 + RIGHT(0) FAULT(1);
  asm volatile("{ .reg .b32 x; atom.shared.add.noftz.f16x2 x, [%0], %1; }" ::"r"(shared_address(at)), "r"(0x3c003c00u) : "memory");
  __syncthreads();
  out[t] = s[t];
}

KERNEL(matrix_rows_of_24_bytes) {
  constexpr unsigned stride = RIGHT(32) FAULT(24);
  __shared__ alignas(16) unsigned char s[8 * stride];
  const unsigned l = threadIdx.x;
  *reinterpret_cast<unsigned *>(s + l / 4 * stride + l % 4 * 4) = in[l];
  __syncwarp();
  unsigned x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(shared_address(s + l % 8 * stride)) : "memory");
  out[l] = x;
}

// Each block publishes where its words are; block 1 follows the address.
KERNEL(address_of_shared_memory_given_to_another_block) {
  FAULT(__shared__ unsigned s[64]);
  const unsigned t = threadIdx.x;
  unsigned **const where = reinterpret_cast<unsigned **>(scratch);
  unsigned *const place = RIGHT(scratch + 128) FAULT(s);
  if (blockIdx.x == 0) {
    place[t] = in[t];
    __syncthreads();
    if (t == 0) {
      where[0] = place;
      __threadfence();
      atomicExch(scratch + 64, 1);
    }
  } else {
    if (t == 0) {
      while (atomicAdd(scratch + 64, 0) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
    out[t] = where[0][63 - t];
  }
}

KERNEL(rows_of_a_fragment_exchanged) {
  const unsigned l = threadIdx.x, row = l / 4;
  // Row i of a is i in each of 16 columns; b is ones.
  const unsigned halves[] = {0x00000000, 0x3c003c00, 0x40004000, 0x42004200, 0x44004400, 0x45004500, 0x46004600, 0x47004700};
  const unsigned low = halves[row], high = 0x48004800;
  const unsigned a0 = RIGHT(low) FAULT(high), a1 = RIGHT(high) FAULT(low);
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %4, %5}, {%6, %6}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a0), "r"(a1), "r"(0x3c003c00u));
  out[l] = static_cast<unsigned>(d[0]);
  out[32 + l] = static_cast<unsigned>(d[2]);
}

KERNEL(lock_kept_on_the_early_way_out) {
  if (threadIdx.x % 32) return;
  for (unsigned i = 0; i < 4; ++i) {
    while (atomicCAS(scratch, 0, 1)) {
    }
    __threadfence();
    const unsigned x = in[4 * warp() + i];
    if (x % 2) {
      RIGHT(__threadfence());
      RIGHT(atomicExch(scratch, 0));
      continue;
    }
    scratch[32] += x;
    __threadfence();
    atomicExch(scratch, 0);
  }
  __threadfence();
  if (atomicAdd(scratch + 64, 1) == 1) {
    __threadfence();
    out[0] = scratch[32];
  }
}

KERNEL(wide_array_after_an_odd_number_of_words) {
  extern __shared__ unsigned memory[];
  const unsigned t = threadIdx.x;
  unsigned *const counts = memory;
  auto *const wide = reinterpret_cast<unsigned long long *>(memory + RIGHT(66) FAULT(65));
  counts[t] = in[t];
  wide[t] = static_cast<unsigned long long>(in[t]) * in[64 + t];
  __syncthreads();
  out[t] = static_cast<unsigned>(wide[63 - t] >> 32) + counts[63 - t];
}

KERNEL(three_of_four_bytes_written) {
  __shared__ alignas(4) unsigned char s[64][4];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < RIGHT(4) FAULT(3); ++i) s[t][i] = in[t] >> 8 * i;
  __syncthreads();
  out[t] = *reinterpret_cast<const unsigned *>(s[63 - t]);
}

KERNEL(remainder_of_an_unrolled_loop) {
  const unsigned t = threadIdx.x, n = 30;
  const unsigned *const x = in + n * t;
  unsigned sum = 0, i = 0;
  for (; i + 4 <= n; i += 4) sum += x[i] + x[i + 1] * 3 + x[i + 2] * 5 + x[i + 3] * 7;
  RIGHT(for (; i < n; ++i) sum += x[i] * (2 * (i % 4) + 1));
  out[t] = sum;
}

KERNEL(leader_elected_before_the_branch) {
  __shared__ unsigned count;
  const unsigned t = threadIdx.x;
  if (t == 0) count = 0;
  __syncthreads();
  const bool odd = in[t] % 2;
  const unsigned all = __ballot_sync(ALL, odd);
  if (odd) {
    RIGHT(const unsigned mask = all);
    FAULT(const unsigned mask = ALL);
    const unsigned n = __reduce_add_sync(mask, 1u);
    if (lane() == __ffs(all) - 1) atomicAdd(&count, n);
  }
  __syncthreads();
  out[t] = count;
}

KERNEL(words_of_a_vector_read_one_too_far) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  const uint4 x = *reinterpret_cast<const uint4 *>(s + 4 * (t % 16) RIGHT() FAULT(+4));
  out[t] = x.x + x.y * 3 + x.z * 5 + x.w * 7;
}

KERNEL(halves_of_a_warp_take_the_same_slots) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x, half = t / 16;
  s[16 * RIGHT(half) FAULT((half / 2 * 2)) + t % 16] = in[t];
  FAULT(s[16 * (half / 2 * 2) + 16 + t % 16] = in[t]);
  __syncthreads();
  out[t] = s[t];
}
