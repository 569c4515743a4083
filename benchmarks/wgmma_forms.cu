// Nothing but E4M3 MMAs, in the forms that patch_embed_gemm could use: operands in place, no
// copies, no epilogue. Values as in its problem.py.
#include <cstdint>

#include "wgmma.cuh"

__device__ uint32_t next_random(uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

// Four E4M3 values: a sign and one of the first `codes` magnitudes.
__device__ uint32_t draw(uint32_t& state, uint32_t codes) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t random = next_random(state);
    word |= ((random >> 8) % codes | (random & 0x80)) << 8 * i;
  }
  return word;
}

constexpr uint32_t A_CODES = 0x40;
constexpr uint32_t B_CODES = 0x28;
constexpr uint32_t M_BYTES = 12 * 64 * 128;  // 12 K blocks of 64 rows
constexpr uint32_t N_BYTES = 3 * 256 * 128;  // 3 K blocks of 256 columns
constexpr uint32_t K_BLOCKS = 6;
constexpr uint32_t STEPS = 4;  // MMAs a K block

// Each warpgroup for itself: `tiles` times 24 MMAs of 64 x COLUMNS x 32, one K block in flight
// while the next one is issued. IN_REGISTERS: the 64 rows are B's, in registers; else A's. `keeps`
// is 0: it hides from ptxas that a tile begins at 0, without which it drops the MMAs of all tiles
// but the last.
template <uint32_t COLUMNS, bool IN_REGISTERS>
__device__ void multiply(float* sink, uint32_t tiles, uint32_t keeps) {
  extern __shared__ __align__(1024) uint8_t smem[];
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  uint32_t state = threadIdx.x * 2654435761u + blockIdx.x * 97 + 1;
  for (uint32_t i = threadIdx.x; i < (M_BYTES + N_BYTES) / 4; i += blockDim.x) {
    const bool is_a = (i < M_BYTES / 4) != IN_REGISTERS;
    reinterpret_cast<uint32_t*>(smem)[i] = draw(state, is_a ? A_CODES : B_CODES);
  }
  uint32_t words[K_BLOCKS * STEPS][4];
#pragma unroll
  for (uint32_t i = 0; i < K_BLOCKS * STEPS; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      words[i][j] = draw(state, B_CODES);
    }
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  float d[COLUMNS / 2] = {};
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    kx::wgmma_fence();
#pragma unroll
    for (uint32_t block = 0; block < K_BLOCKS; ++block) {
      const uint64_t rows =
          kx::wgmma_k_major_128b_descriptor(base + (tile % 2 * K_BLOCKS + block) * (64 * 128));
      const uint64_t columns =
          kx::wgmma_k_major_128b_descriptor(base + M_BYTES + block % 3 * (256 * 128));
#pragma unroll
      for (uint32_t step = 0; step < STEPS; ++step) {
        const bool accumulate = block > 0 || step > 0 || keeps != 0;
        if constexpr (IN_REGISTERS) {
          kx::wgmma_mma_async(d, words[STEPS * block + step], columns + 2 * step, accumulate);
        } else {
          kx::wgmma_mma_async(d, rows + 2 * step, columns + 2 * step, accumulate);
        }
      }
      kx::wgmma_commit_group();
      kx::wgmma_wait_group<1>();
    }
  }
  kx::wgmma_wait_group(d);
  float sum = 0;
  for (const float value : d) {
    sum += value;
  }
  if (sum == 0.12345f) {
    *sink = sum;  // so that the MMAs stay
  }
}

#define FORM(name, columns, in_registers, warpgroups)               \
  extern "C" __global__ void __launch_bounds__(128 * warpgroups, 1) \
      name(float* sink, uint32_t tiles, uint32_t keeps) {           \
    multiply<columns, in_registers>(sink, tiles, keeps);            \
  }

FORM(shared_128, 128, false, 2)
FORM(shared_192, 192, false, 2)
FORM(shared_256, 256, false, 2)
FORM(registers_64, 64, true, 3)
FORM(registers_128, 128, true, 2)
