// Phases minimal, 1 and 3: multiplications by ordinary instructions, static shared memory.
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
  static constexpr uint32_t VEC_WIDTH = KX_VEC_WIDTH;
  static constexpr Reduce REDUCE = Reduce::KX_TOKEN(KX_REDUCE);
  static constexpr SyncPolicy SYNC_POLICY = KX_SYNC(KX_SYNC_POLICY);
  static constexpr Layout LAYOUT = Layout::KX_TOKEN(KX_LAYOUT);

  // In phase minimal a thread has a row of its own.
  static constexpr bool IS_MINIMAL = PHASE == 0;
  static constexpr uint32_t NUM_WARPS = IS_MINIMAL ? BLOCK_M / 32 : KX_NUM_WARPS;
  static constexpr uint32_t THREADS = 32 * NUM_WARPS;
  // Rows of a warp in phase 3.
  static constexpr uint32_t ROWS = BLOCK_M / NUM_WARPS;

  // A row of K or of scores begins where the one before ends, or a bank further.
  static constexpr bool IS_PADDED = LAYOUT == Layout::padded_;
  static constexpr uint32_t K_PITCH = HEAD_DIM + (IS_PADDED ? 2 : 0);
  static constexpr uint32_t SCORES_PITCH = BLOCK_N + (IS_PADDED ? 1 : 0);

  // Static shared memory: Q | K | V | scores | output | maximum, sum and factor of each row.
  static constexpr uint32_t Q_BYTES = BLOCK_M * HEAD_DIM * 2;
  static constexpr uint32_t K_BYTES = BLOCK_N * K_PITCH * 2;
  static constexpr uint32_t V_BYTES = BLOCK_N * HEAD_DIM * 2;
  static constexpr uint32_t SCORES_BYTES = IS_MINIMAL ? 0 : BLOCK_M * SCORES_PITCH * 4;
  static constexpr uint32_t OUT_BYTES = IS_MINIMAL ? 0 : BLOCK_M * HEAD_DIM * 4;
  static constexpr uint32_t ROWS_BYTES = IS_MINIMAL ? 0 : 3 * BLOCK_M * 4;
  static constexpr uint32_t SMEM_BYTES =
      Q_BYTES + K_BYTES + V_BYTES + SCORES_BYTES + OUT_BYTES + ROWS_BYTES;

  static_assert(BLOCK_N == 64, "phases 1 to 7 take 64 keys at a time (block_n=64)");
  static_assert(BLOCK_M % 32 == 0 && (PHASE == 0 || BLOCK_M % NUM_WARPS == 0),
                "each warp has the same number of rows");
  static_assert(SMEM_BYTES <= 48 * 1024,
                "Q, K, V, scores and output do not fit into the 49,152 bytes that static shared "
                "memory may have");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);
KX_EXPORT(block_m, Config::BLOCK_M);
KX_EXPORT(block_n, Config::BLOCK_N);
KX_EXPORT(head_dim, Config::HEAD_DIM);
KX_EXPORT(static_smem_bytes, Config::SMEM_BYTES);
