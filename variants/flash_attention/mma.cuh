// Phases 5 to 7: a warp has 16 rows of queries; scores, probabilities and output stay in its
// registers. Phase 5 reads its operands from rows of 128 bytes, phase 6 swizzles them, phase 7
// copies the next tile of K and V while it multiplies.
#pragma once

#include <cuda_fp16.h>

#include "config.cuh"
#include "cp_async.cuh"
#include "ldst.cuh"
#include "matrix.cuh"
#include "mma_f16.cuh"
#include "softmax.cuh"

constexpr uint32_t SCORES = Config::BLOCK_N / 2;
constexpr uint32_t OUTPUTS = Config::HEAD_DIM / 2;
constexpr uint32_t K_STEPS = Config::HEAD_DIM / 16;

// Where the 16-byte chunk of a row lies in a tile.
__device__ __forceinline__ uint32_t place(uint32_t row, uint32_t chunk) {
  if constexpr (Config::IS_SWIZZLED) {
    chunk ^= row % 8;
  }
  return row * Config::ROW_BYTES + 16 * chunk;
}

// The CTA copies ROWS rows to a tile.
template <uint32_t ROWS>
__device__ __forceinline__ void copy_rows(uint32_t tile, const __half* source) {
  constexpr uint32_t CHUNKS = Config::ROW_BYTES / 16;
  static_assert(ROWS * CHUNKS % Config::THREADS == 0, "each thread copies as many chunks");
#pragma unroll
  for (uint32_t i = 0; i < ROWS * CHUNKS / Config::THREADS; ++i) {
    const uint32_t chunk = i * Config::THREADS + threadIdx.x;
    const uint32_t destination = tile + place(chunk / CHUNKS, chunk % CHUNKS);
    if constexpr (Config::IS_PIPELINED) {
      kx::cp_async_cg(destination, source + 8 * chunk);
    } else {
      uint32_t words[4];
      kx::ld_global_nc<4>(words, source + 8 * chunk);
      kx::st_shared<4>(destination, words);
    }
  }
}

// s = q * K^T, 16 rows by BLOCK_N keys.
__device__ __forceinline__ void multiply_scores(const uint32_t (&q)[K_STEPS][4], uint32_t k_tile,
                                                float (&s)[SCORES]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t i = 0; i < SCORES; ++i) {
    s[i] = 0.0f;
  }
#pragma unroll
  for (uint32_t keys = 0; keys < Config::BLOCK_N; keys += 16) {
#pragma unroll
    for (uint32_t step = 0; step < K_STEPS; ++step) {
      uint32_t b[4];  // 8 keys by 16 of K, and the next 8 keys
      const uint32_t key = keys + lane % 8 + lane / 16 * 8;
      kx::ldmatrix_x4(b, k_tile + place(key, 2 * step + lane / 8 % 2));
      kx::mma_sync_m16n8k16_f16(s + keys / 2, q[step], b);
      kx::mma_sync_m16n8k16_f16(s + keys / 2 + 4, q[step], b + 2);
    }
  }
}

// o += p * V, 16 rows by HEAD_DIM columns.
__device__ __forceinline__ void multiply_values(const uint32_t (&p)[SCORES / 2], uint32_t v_tile,
                                                float (&o)[OUTPUTS]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t keys = 0; keys < Config::BLOCK_N; keys += 16) {
#pragma unroll
    for (uint32_t column = 0; column < Config::HEAD_DIM; column += 16) {
      uint32_t b[4];  // 16 keys by 8 columns, and the next 8 columns
      kx::ldmatrix_x4_trans(b, v_tile + place(keys + lane % 16, column / 8 + lane / 16));
      kx::mma_sync_m16n8k16_f16(o + column / 2, p + keys / 4, b);
      kx::mma_sync_m16n8k16_f16(o + column / 2 + 4, p + keys / 4, b + 2);
    }
  }
}

// K and V of a head, as tiles of this CTA's shared memory.
struct Tiles {
  const __half* k;
  const __half* v;
  uint32_t smem;

  __device__ __forceinline__ uint32_t k_tile(uint32_t stage) const {
    return smem + 2 * stage * Config::TILE_BYTES;
  }
  __device__ __forceinline__ uint32_t v_tile(uint32_t stage) const {
    return k_tile(stage) + Config::TILE_BYTES;
  }
  __device__ __forceinline__ void copy(uint32_t stage, uint32_t key) const {
    copy_rows<Config::BLOCK_N>(k_tile(stage), k + size_t{key} * Config::HEAD_DIM);
    copy_rows<Config::BLOCK_N>(v_tile(stage), v + size_t{key} * Config::HEAD_DIM);
    if constexpr (Config::IS_PIPELINED) {
      kx::cp_async_commit_group();
    }
  }
};

// One tile of keys: scores, probabilities, output.
__device__ __forceinline__ void attend(const uint32_t (&q)[K_STEPS][4], const Tiles& tiles,
                                       uint32_t stage, Softmax<>& softmax, float (&o)[OUTPUTS]) {
  float s[SCORES], factor[2];
  uint32_t p[SCORES / 2];
  multiply_scores(q, tiles.k_tile(stage), s);
  softmax.update(s, factor);
  scale_rows(o, factor);
  pack(s, p);
  multiply_values(p, tiles.v_tile(stage), o);
}

extern "C" __global__ void __launch_bounds__(Config::THREADS)
    flash_attention(const __half* q, const __half* k, const __half* v, __half* out,
                    uint32_t keys, float scale_log2) {
  constexpr uint32_t D = Config::HEAD_DIM;
  __shared__ __align__(1024) uint8_t smem[Config::SMEM_BYTES];
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t own = threadIdx.x / 32 * Config::MMA_M;
  const uint32_t q_tile = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  const size_t head = size_t{blockIdx.y} * keys * D;
  const size_t first_row = size_t{blockIdx.x} * Config::BLOCK_M * D;
  const Tiles tiles{k + head, v + head, q_tile + Config::Q_BYTES};

  copy_rows<Config::BLOCK_M>(q_tile, q + head + first_row);
  if constexpr (Config::IS_PIPELINED) {
    kx::cp_async_commit_group();
    tiles.copy(0, 0);
    kx::cp_async_wait_group<1>();
  }
  __syncthreads();  // Q is there
  uint32_t queries[K_STEPS][4];
#pragma unroll
  for (uint32_t step = 0; step < K_STEPS; ++step) {
    kx::ldmatrix_x4(queries[step], q_tile + place(own + lane % 16, 2 * step + lane / 16));
  }
  Softmax<> softmax(scale_log2);
  float o[OUTPUTS] = {};

  if constexpr (Config::IS_PIPELINED) {
    uint32_t stage = 0;
    for (uint32_t key = 0; key < keys; key += Config::BLOCK_N, stage ^= 1) {
      kx::cp_async_wait_group<0>();
      __syncthreads();  // this tile is there, and all have read the one before
      if (key + Config::BLOCK_N < keys) {
        tiles.copy(stage ^ 1, key + Config::BLOCK_N);
      }
      attend(queries, tiles, stage, softmax, o);
    }
  } else {
    for (uint32_t key = 0; key < keys; key += Config::BLOCK_N) {
      tiles.copy(0, key);
      __syncthreads();  // the tile is there
      attend(queries, tiles, 0, softmax, o);
      __syncthreads();  // all have read it
    }
  }

  float factor[2];
  softmax.finish(factor);
  scale_rows(o, factor);
  uint32_t packed[OUTPUTS / 2];
  pack(o, packed);
  __half* row = out + head + first_row + (own + lane / 4) * D + 2 * (lane % 4);
#pragma unroll
  for (uint32_t i = 0; i < OUTPUTS / 2; ++i) {
    kx::st_global<1>(row + i % 2 * 8 * D + i / 2 * 8, &packed[i]);
  }
}
