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

// Of the lane's two rows.
struct Softmax {
  float scale;  // of the scores, to base 2
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0.0f, 0.0f};

  __device__ __forceinline__ explicit Softmax(float scale_log2) : scale(scale_log2) {}

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
        s[i] = kx::ex2_approx_ftz_f32(fmaf(s[i], scale, -offset));
        s[i + 1] = kx::ex2_approx_ftz_f32(fmaf(s[i + 1], scale, -offset));
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
