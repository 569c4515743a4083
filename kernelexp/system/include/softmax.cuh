// A softmax over tiles of scores that lie in registers as mma.sync and wgmma leave them: lane l has
// s[4 j + {0, 1}] of row l / 4, columns 8 j + 2 (l % 4) + {0, 1}, and s[4 j + {2, 3}] of row
// l / 4 + 8. Four lanes have a row.
#pragma once

#include <cstdint>

#include "softmax_math.cuh"

// Four lanes' values, added up.
__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffff, value, 1);
  return value + __shfl_xor_sync(0xffffffff, value, 2);
}

// 2^x for x <= 0 by additions and multiplications, 3 x 10^-6 of it off: 2^n times a polynomial of
// degree 4 for the rest, of -0.5 to 0.5. Below 2^-126 it is less than 2^-126.
__device__ __forceinline__ float ex2_polynomial(float x) {
  constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: a sum has no bits below 1
  x = fmaxf(x, -127.0f);
  const float sum = x + ROUND;
  const float rest = x - (sum - ROUND);
  float y = fmaf(rest, 9.58260934e-3f, 5.59057498e-2f);
  y = fmaf(y, rest, 2.40240988e-1f);
  y = fmaf(y, rest, 6.93124274e-1f);
  y = fmaf(y, rest, 1.0f);
  return __int_as_float(__float_as_int(y) + (__float_as_int(sum) << 23));
}

// Of the lane's two rows. POLYNOMIALS of four exponentials are left to the units that multiply: the
// others take a special function unit 8 cycles a warp.
template <int POLYNOMIALS = 0>
struct Softmax {
  float scale;  // of the scores, to base 2
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0.0f, 0.0f};

  __device__ __forceinline__ explicit Softmax(float scale_log2) : scale(scale_log2) {}

  static __device__ __forceinline__ float exponential(int i, float x) {
    return i / 4 % 4 < POLYNOMIALS ? ex2_polynomial(x) : kx::ex2_approx_ftz_f32(x);
  }

  // Scores become probabilities, up to the sum of their row; `factor` is by how much what came
  // before must be scaled.
  template <int SCORES>
  __device__ __forceinline__ void update(float (&s)[SCORES], float (&factor)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = largest[half];
#pragma unroll
      for (int i = 2 * half; i < SCORES; i += 4) {
        now = fmaxf(now, fmaxf(s[i], s[i + 1]));
      }
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 1));
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 2));
      factor[half] = kx::ex2_approx_ftz_f32((largest[half] - now) * scale);
      largest[half] = now;
      const float offset = now * scale;
      float sum = 0.0f;
#pragma unroll
      for (int i = 2 * half; i < SCORES; i += 4) {
        s[i] = exponential(i, fmaf(s[i], scale, -offset));
        s[i + 1] = exponential(i, fmaf(s[i + 1], scale, -offset));
        sum += s[i] + s[i + 1];
      }
      total[half] = total[half] * factor[half] + sum;
    }
  }

  // What to multiply the two rows' outputs by in the end.
  __device__ __forceinline__ void finish(float (&factor)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      factor[half] = 1.0f / quad_sum(total[half]);
    }
  }
};

template <int VALUES>
__device__ __forceinline__ void scale_rows(float (&values)[VALUES], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < VALUES; ++i) {
    values[i] *= factor[i / 2 % 2];
  }
}

// An accumulator as F16: pairs of columns, which for scores are the operand A of the next MMA.
template <int VALUES>
__device__ __forceinline__ void pack(const float (&values)[VALUES],
                                     uint32_t (&packed)[VALUES / 2]) {
#pragma unroll
  for (int i = 0; i < VALUES / 2; ++i) {
    packed[i] = kx::cvt_rn_f16x2_f32(values[2 * i + 1], values[2 * i]);
  }
}
