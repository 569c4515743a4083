// What a softmax in registers computes with: PTX ISA 9.1, sections 9.7.3.23 (ex2) and 9.7.9.21
// (cvt).
#pragma once

#include <cstdint>

namespace kx {

// 2^x, off by two units in the last place at most; 0 for minus infinity.
__device__ __forceinline__ float ex2_approx_ftz_f32(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two F16 in one register, each rounded to nearest even: `low` in bits 15:0.
__device__ __forceinline__ uint32_t cvt_rn_f16x2_f32(float high, float low) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

}  // namespace kx
