// What a variant is: its axes, and every size that follows from them.
#pragma once

#include <cstdint>

#include "axes.cuh"
#include "axis.cuh"
#include "export.cuh"

// Sizes in bytes where the name says so, else in elements, columns or threads.
struct Config {
  static constexpr uint32_t STAGES = KX_STAGES;
  static constexpr TmemLoad TMEM_LOAD = TmemLoad::KX_TOKEN(KX_TMEM_LOAD);
  static constexpr uint32_t EPILOGUE_WARPS = KX_EPILOGUE_WARPS;
  static constexpr EpilogueBounds EPILOGUE_BOUNDS = EpilogueBounds::KX_TOKEN(KX_EPILOGUE_BOUNDS);
  static constexpr Store STORE = Store::KX_TOKEN(KX_STORE);
  static constexpr uint32_t PHASE2_UNROLL = KX_PHASE2_UNROLL;
  static constexpr Combined COMBINED = Combined::KX_TOKEN(KX_COMBINED);
  static constexpr MainloopWait MAINLOOP_WAIT = MainloopWait::KX_TOKEN(KX_MAINLOOP_WAIT);
  static constexpr uint32_t CTA_GROUP = KX_CTA_GROUP;
  static constexpr uint32_t TILE_N = KX_TILE_N;

  // The problem: out[m, N] = a[m, K] * b[N, K]^T + combined[row % PERIOD, N].
  static constexpr uint32_t N = 768;
  static constexpr uint32_t K = 768;
  static constexpr uint32_t PERIOD = 196;

  // The tile of a cluster; its CTAs split A by rows and B by columns of the output.
  static constexpr uint32_t CTA_M = 128;
  static constexpr uint32_t TILE_M = CTA_M * CTA_GROUP;
  static constexpr uint32_t TILE_K = 128;
  static constexpr uint32_t MMA_K = 32;
  static constexpr uint32_t K_BLOCKS = K / TILE_K;
  static constexpr uint32_t COLUMN_TILES = N / TILE_N;
  static constexpr uint32_t A_BYTES = CTA_M * TILE_K;
  static constexpr uint32_t B_ROWS = TILE_N / CTA_GROUP;
  static constexpr uint32_t B_BYTES = B_ROWS * TILE_K;
  static constexpr uint32_t STAGE_BYTES = A_BYTES + B_BYTES;

  // Warps: 0 loads, 1 multiplies, the others are the epilogue.
  static constexpr uint32_t LOAD_WARP = 0;
  static constexpr uint32_t MMA_WARP = 1;
  static constexpr uint32_t FIRST_EPILOGUE_WARP = 2;
  static constexpr uint32_t THREADS = 32 * (FIRST_EPILOGUE_WARP + EPILOGUE_WARPS);

  // Tensor memory: one allocation, two accumulators.
  static constexpr uint32_t ACCUMULATORS = 2;
  static constexpr uint32_t TMEM_COLUMNS = ACCUMULATORS * TILE_N;

  // The epilogue works on chunks of 32 rows (a lane each) by 32 columns.
  static constexpr uint32_t CHUNK = 32;
  // A row of a warp's buffer, and 16 bytes so that rows start in different banks.
  static constexpr uint32_t PITCH_BYTES = 2 * TILE_N + 16;
  static constexpr bool HAS_BUFFERS =
      STORE == Store::staged_ || COMBINED == Combined::smem_prefetch_;
  static constexpr uint32_t BUFFER_BYTES = HAS_BUFFERS ? 32 * PITCH_BYTES : 0;

  // Shared memory: stages | TMEM address, mbarriers | a buffer for each epilogue warp.
  static constexpr uint32_t STAGES_OFFSET = 0;
  static constexpr uint32_t TMEM_ADDRESS_OFFSET = STAGES * STAGE_BYTES;
  static constexpr uint32_t FULL_OFFSET = TMEM_ADDRESS_OFFSET + 8;
  static constexpr uint32_t FREE_OFFSET = FULL_OFFSET + 8 * STAGES;
  static constexpr uint32_t MAINLOOP_DONE_OFFSET = FREE_OFFSET + 8 * STAGES;
  static constexpr uint32_t EPILOGUE_FREE_OFFSET = MAINLOOP_DONE_OFFSET + 8 * ACCUMULATORS;
  static constexpr uint32_t BARRIERS_END = EPILOGUE_FREE_OFFSET + 8 * ACCUMULATORS;
  static constexpr uint32_t BUFFERS_OFFSET = (BARRIERS_END + 127) / 128 * 128;
  static constexpr uint32_t SMEM_BYTES = BUFFERS_OFFSET + EPILOGUE_WARPS * BUFFER_BYTES;

  static_assert(CTA_GROUP == 1 || CTA_GROUP == 2, "tcgen05 has cta_group::1 and cta_group::2 only");
  static_assert(TILE_N == 128 || TILE_N == 256, "an MMA of 128 rows a CTA has at most 256 columns");
  static_assert(EPILOGUE_WARPS >= 4 && EPILOGUE_WARPS <= 8,
                "each of the 4 row groups of 32 lanes needs a warp and can use two");
  static_assert(STAGES >= 2 && STAGES <= K_BLOCKS,
                "a tile's K blocks go at least once round the ring");
  static_assert(STAGE_BYTES % 1024 == 0, "the 128-byte swizzle repeats every 1024 bytes");
  static_assert(32 % PHASE2_UNROLL == 0, "phase 2 takes the 32 rows in equal steps");
  static_assert(TMEM_COLUMNS <= 512, "an SM has 512 columns of tensor memory");
  static_assert(SMEM_BYTES <= 227 * 1024, "a CTA has at most 232,448 bytes of shared memory");
  static_assert(COMBINED != Combined::prestage_ || STORE == Store::staged_,
                "combined=prestage fills the staging buffers, which store=staged has");
  static_assert(EPILOGUE_BOUNDS == EpilogueBounds::constant_ || !HAS_BUFFERS,
                "the copy of a buffer's rows has a vector width for each number of columns");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(cluster, Config::CTA_GROUP);
KX_EXPORT(dynamic_smem_bytes, Config::SMEM_BYTES);
KX_EXPORT(tmem_columns, Config::TMEM_COLUMNS);
KX_EXPORT(tile_m, Config::TILE_M);
KX_EXPORT(tile_n, Config::TILE_N);
KX_EXPORT(tile_k, Config::TILE_K);
KX_EXPORT(a_box_rows, Config::CTA_M);
KX_EXPORT(b_box_rows, Config::B_ROWS);
// The parts of the shared memory, for the budget that `kernelexp audit` prints.
KX_EXPORT(smem_stages_bytes, Config::STAGES * Config::STAGE_BYTES);
KX_EXPORT(smem_barriers_bytes, Config::BUFFERS_OFFSET - Config::TMEM_ADDRESS_OFFSET);
KX_EXPORT(smem_buffers_bytes, Config::EPILOGUE_WARPS * Config::BUFFER_BYTES);
