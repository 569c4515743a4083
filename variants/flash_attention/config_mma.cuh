// Phases 5, 6 and 7: mma.sync, 16 rows of queries a warp.
#pragma once

#include <cstdint>

#include "axes.cuh"
#include "export.cuh"

// Sizes in bytes where the name says so, else in elements, rows or threads.
struct Config {
  static constexpr uint32_t PHASE = KX_PHASE_NUMBER;
  static constexpr uint32_t BLOCK_M = KX_BLOCK_M;
  static constexpr uint32_t BLOCK_N = KX_BLOCK_N;
  static constexpr uint32_t HEAD_DIM = 64;
  static constexpr uint32_t NUM_WARPS = KX_NUM_WARPS;
  static constexpr uint32_t THREADS = 32 * NUM_WARPS;
  static constexpr uint32_t MMA_M = 16;

  // From phase 6 on, 16-byte chunk c of row r lies in place of c ^ (r % 8).
  static constexpr bool IS_SWIZZLED = PHASE >= 6;
  // In phase 7 a tile of K and V is copied while the one before is multiplied.
  static constexpr bool IS_PIPELINED = PHASE >= 7;
  static constexpr uint32_t STAGES = IS_PIPELINED ? 2 : 1;

  // Shared memory: Q | K and V of each stage.
  static constexpr uint32_t ROW_BYTES = 2 * HEAD_DIM;
  static constexpr uint32_t Q_BYTES = BLOCK_M * ROW_BYTES;
  static constexpr uint32_t TILE_BYTES = BLOCK_N * ROW_BYTES;
  static constexpr uint32_t SMEM_BYTES = Q_BYTES + STAGES * 2 * TILE_BYTES;

  static_assert(BLOCK_N == 64, "phases 1 to 7 take 64 keys at a time (block_n=64)");
  static_assert(BLOCK_M == MMA_M * NUM_WARPS,
                "in phases 5 to 7 a warp has 16 rows: block_m = 16 x num_warps");
  static_assert(SMEM_BYTES <= 48 * 1024,
                "Q, K and V do not fit into the 49,152 bytes that static shared memory may have");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);
KX_EXPORT(block_m, Config::BLOCK_M);
KX_EXPORT(block_n, Config::BLOCK_N);
KX_EXPORT(head_dim, Config::HEAD_DIM);
KX_EXPORT(static_smem_bytes, Config::SMEM_BYTES);
