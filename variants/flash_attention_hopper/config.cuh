// What a variant is: its axes, and every size that follows from them. Plain C++.
#pragma once

#include <cstdint>

#include "axes.cuh"
#include "export.cuh"

// Sizes in bytes where the name says so, else in elements, rows or threads.
struct Config {
  static constexpr uint32_t BLOCK_M = KX_BLOCK_M;
  static constexpr uint32_t BLOCK_N = KX_BLOCK_N;
  static constexpr uint32_t HEAD_DIM = KX_HEAD_DIM;
  static constexpr uint32_t STAGES = KX_STAGES;
  static constexpr Schedule SCHEDULE = Schedule::KX_TOKEN(KX_SCHEDULE);
  static constexpr Overlap OVERLAP = Overlap::KX_TOKEN(KX_OVERLAP);
  static constexpr int POLYNOMIALS = KX_POLYNOMIALS;
  static constexpr bool IS_PERSISTENT = Ctas::KX_TOKEN(KX_CTAS) == Ctas::persistent_;

  // One to three warpgroups multiply, 64 rows of queries each; a warp of the last one loads.
  static constexpr uint32_t MMA_M = 64;
  static constexpr uint32_t MMA_K = 16;
  static constexpr uint32_t WARPGROUPS = BLOCK_M / MMA_M;
  static constexpr uint32_t THREADS = 128 * (WARPGROUPS + 1);
  static constexpr bool TAKES_TURNS = SCHEDULE == Schedule::pingpong_ && WARPGROUPS > 1;
  // With one warpgroup that multiplies, two CTAs share an SM.
  static constexpr uint32_t CTAS_PER_SM = WARPGROUPS == 1 ? 2 : 1;
  static constexpr uint32_t LOAD_REGISTERS = WARPGROUPS == 3 ? 32 : 24;
  static constexpr uint32_t MMA_REGISTERS =
      WARPGROUPS == 3 ? 160 : WARPGROUPS == 2 ? 240 : 232;

  // Registers per thread: scores of a tile in F32 and, as probabilities, in F16; the output.
  static constexpr uint32_t SCORES = BLOCK_N / 2;
  static constexpr uint32_t PROBABILITIES = BLOCK_N / 4;
  static constexpr uint32_t OUTPUTS = HEAD_DIM / 2;

  // Boxes of 64 columns, 128 bytes, one row of the swizzle.
  static constexpr uint32_t BOX_COLUMNS = 64;
  static constexpr uint32_t BOXES = HEAD_DIM / BOX_COLUMNS;
  static constexpr uint32_t ROW_BYTES = 2 * BOX_COLUMNS;
  static constexpr uint32_t Q_BOX_BYTES = MMA_M * ROW_BYTES;
  static constexpr uint32_t TILE_BOX_BYTES = BLOCK_N * ROW_BYTES;
  // A warp stores the output of its 16 rows.
  static constexpr uint32_t OUT_BOX_ROWS = 16;

  // Shared memory: Q of each block, boxes of a warpgroup together | K of each stage | V of each
  // stage | barriers. The output takes Q's place.
  static constexpr uint32_t Q_STAGES = IS_PERSISTENT ? 2 : 1;
  static constexpr uint32_t Q_BYTES = WARPGROUPS * BOXES * Q_BOX_BYTES;
  static constexpr uint32_t TILE_BYTES = BOXES * TILE_BOX_BYTES;
  static constexpr uint32_t K_OFFSET = Q_STAGES * Q_BYTES;
  static constexpr uint32_t V_OFFSET = K_OFFSET + STAGES * TILE_BYTES;
  static constexpr uint32_t BARRIERS_OFFSET = V_OFFSET + STAGES * TILE_BYTES;
  static constexpr uint32_t BARRIERS = 4 * STAGES + 2 * Q_STAGES;
  static constexpr uint32_t SMEM_BYTES = BARRIERS_OFFSET + 8 * BARRIERS;

  static_assert(BLOCK_M % MMA_M == 0 && WARPGROUPS <= 3,
                "a warpgroup multiplies 64 rows, and a CTA has one to three that do");
  static_assert(HEAD_DIM == 64 || HEAD_DIM == 128, "wgmma_f16.cuh has these widths");
  static_assert(SCORES + PROBABILITIES + OUTPUTS + 24 <= MMA_REGISTERS,
                "scores, probabilities and output do not fit into a thread's registers");
  static_assert(SMEM_BYTES <= 227 * 1024, "a CTA has at most 232,448 bytes of shared memory");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(dynamic_smem_bytes, Config::SMEM_BYTES);
KX_EXPORT(block_m, Config::BLOCK_M);
KX_EXPORT(block_n, Config::BLOCK_N);
KX_EXPORT(head_dim, Config::HEAD_DIM);
KX_EXPORT(persistent_ctas_per_sm, Config::IS_PERSISTENT ? Config::CTAS_PER_SM : 0);
KX_EXPORT(box_columns, Config::BOX_COLUMNS);
KX_EXPORT(q_box_rows, Config::MMA_M);
KX_EXPORT(out_box_rows, Config::OUT_BOX_ROWS);
