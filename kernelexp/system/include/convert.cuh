// Conversions: PTX ISA 9.1, section 9.7.9.21 (cvt).
#pragma once

#include <cstdint>

namespace kx {

// Two BF16 in one register, each rounded to nearest even: `low` in bits 15:0.
__device__ __forceinline__ uint32_t cvt_rn_bf16x2_f32(float high, float low) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// A BF16 is the upper half of the float of the same value.
__device__ __forceinline__ float low_bf16(uint32_t packed) {
  return __uint_as_float(packed << 16);
}

__device__ __forceinline__ float high_bf16(uint32_t packed) {
  return __uint_as_float(packed & 0xffff0000u);
}

}  // namespace kx
