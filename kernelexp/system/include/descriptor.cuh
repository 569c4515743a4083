// Descriptors of the tensor core's operands: PTX ISA 9.1, section 9.7.16.4.
#pragma once

#include <cstdint>

namespace kx {

// A K-major operand tile of 128-byte rows in shared memory with the 128-byte swizzle, aligned to
// 1024. Bits 13:0 address, 29:16 leading-dimension offset (unused with a swizzle; 1 by convention),
// 45:32 stride from one group of 8 rows to the next, all in units of 16 bytes; 48:46 the constant
// 0b001; 51:49 base offset 0, as the tile is aligned; 63:61 swizzle mode 2, 128 bytes.
__device__ __forceinline__ uint64_t k_major_128b_descriptor(uint32_t address) {
  constexpr uint64_t LEADING_OFFSET = 1;
  constexpr uint64_t STRIDE_OFFSET = (8 * 128) >> 4;
  constexpr uint64_t SWIZZLE_128B = 2;
  constexpr uint64_t FIXED =
      LEADING_OFFSET << 16 | STRIDE_OFFSET << 32 | uint64_t{0b001} << 46 | SWIZZLE_128B << 61;
  return FIXED | (address & 0x3ffff) >> 4;
}

// The descriptor of the tile's columns from `bytes` on, within its 128-byte rows: the swizzle acts
// on the address that the hardware forms, so that the start address just moves.
__device__ __forceinline__ uint64_t advance_k(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

// Instruction descriptor of kind::f8f6f4, dense, K-major: D F32 (1 in bits 5:4), A and B E4M3 (0 in
// bits 9:7 and 12:10), N / 8 in bits 22:17, M / 16 in bits 28:24.
__host__ __device__ constexpr uint32_t e4m3_f32_instruction(uint32_t m, uint32_t n) {
  return 1u << 4 | (n >> 3) << 17 | (m >> 4) << 24;
}

static_assert(e4m3_f32_instruction(256, 256) == 0x10400010);
static_assert(e4m3_f32_instruction(128, 256) == 0x08400010);

}  // namespace kx
