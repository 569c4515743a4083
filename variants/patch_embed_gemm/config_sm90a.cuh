// What a variant for Hopper is: its axes, and every size that follows from them.
#pragma once

#include <cstdint>

#include "axes_sm90a.cuh"
#include "axis.cuh"
#include "export.cuh"

// Sizes in bytes where the name says so, else in elements, columns or threads.
struct Config {
  static constexpr uint32_t STAGES = KX_STAGES;
  static constexpr uint32_t TILE_M = KX_TILE_M;
  static constexpr uint32_t TILE_N = KX_TILE_N;
  static constexpr OperandB OPERAND_B = OperandB::KX_TOKEN(KX_OPERAND_B);
  static constexpr Schedule SCHEDULE = Schedule::KX_TOKEN(KX_SCHEDULE);
  static constexpr Store STORE = Store::KX_TOKEN(KX_STORE);
  static constexpr uint32_t BOXES = KX_BOXES;
  static constexpr Combined COMBINED = Combined::KX_TOKEN(KX_COMBINED);
  static constexpr Registers REGISTERS = Registers::KX_TOKEN(KX_REGISTERS);
  static constexpr uint32_t CLUSTER = KX_CLUSTER;
  static constexpr uint32_t PREFETCH = KX_PREFETCH;
  static constexpr Order ORDER = Order::KX_TOKEN(KX_ORDER);

  // The problem: out[m, N] = a[m, K] * b[N, K]^T + combined[row % PERIOD, N].
  static constexpr uint32_t N = 768;
  static constexpr uint32_t K = 768;
  static constexpr uint32_t PERIOD = 196;

  // Warps: two warpgroups multiply, the first warp of the third loads.
  static constexpr uint32_t WARPGROUPS = 2;
  static constexpr uint32_t THREADS = 128 * (WARPGROUPS + 1);
  static constexpr uint32_t LOAD_REGISTERS = 40;
  static constexpr uint32_t MMA_REGISTERS = 232;

  // The tile of a CTA, and a warpgroup's share of it.
  static constexpr bool TAKES_TURNS = SCHEDULE != Schedule::cooperative_;
  static constexpr uint32_t SHARES = TAKES_TURNS ? 1 : WARPGROUPS;
  static constexpr uint32_t MMA_M = 64;
  static constexpr uint32_t MMAS = TILE_M / SHARES / MMA_M;
  static constexpr uint32_t ACCUMULATORS = TILE_N / 2;  // registers a thread, for one of MMAS
  static constexpr uint32_t TILE_K = 128;
  static constexpr uint32_t MMA_K = 32;
  static constexpr uint32_t K_BLOCKS = K / TILE_K;
  static constexpr uint32_t COLUMN_TILES = N / TILE_N;
  // Tiles until the first row has the same place in the table again.
  static constexpr uint32_t TILE_PERIOD = PERIOD / 4;

  // A cluster's CTAs share B's columns (streamed) or A's rows (resident), each loading a part.
  static constexpr bool RESIDENT = OPERAND_B == OperandB::resident_;
  static constexpr uint32_t A_BOX_ROWS = RESIDENT ? TILE_M / CLUSTER : TILE_M;
  static constexpr uint32_t B_BOX_ROWS = RESIDENT ? TILE_N : TILE_N / CLUSTER;
  static constexpr uint32_t A_BYTES = TILE_M * TILE_K;
  static constexpr uint32_t B_BYTES = TILE_N * TILE_K;
  static constexpr uint32_t STAGE_BYTES = RESIDENT ? A_BYTES : A_BYTES + B_BYTES;
  static constexpr uint32_t RESIDENT_BYTES = RESIDENT ? K_BLOCKS * B_BYTES : 0;
  // Where a cluster keeps its columns, this many kinds of clusters share the rows of A.
  static constexpr uint32_t STRIPS = RESIDENT ? N / (CLUSTER * TILE_N) : 1;

  // A warp stores boxes of 16 rows (its own of an MMA) by 64 columns (128 bytes, one swizzle row).
  static constexpr uint32_t BOX_ROWS = 16;
  static constexpr uint32_t BOX_COLUMNS = 64;
  static constexpr uint32_t BOX_BYTES = BOX_ROWS * BOX_COLUMNS * 2;
  static constexpr uint32_t TILE_BOXES = TILE_N / BOX_COLUMNS;
  static constexpr uint32_t BUFFER_BYTES = STORE == Store::direct_ ? 0 : BOXES * BOX_BYTES;

  // Shared memory: resident B | stages | a buffer for each warp that multiplies | mbarriers.
  static constexpr uint32_t STAGES_OFFSET = RESIDENT_BYTES;
  static constexpr uint32_t BUFFERS_OFFSET = STAGES_OFFSET + STAGES * STAGE_BYTES;
  static constexpr uint32_t FULL_OFFSET = BUFFERS_OFFSET + 4 * WARPGROUPS * BUFFER_BYTES;
  static constexpr uint32_t FREE_OFFSET = FULL_OFFSET + 8 * STAGES;
  static constexpr uint32_t RESIDENT_FULL_OFFSET = FREE_OFFSET + 8 * STAGES;
  static constexpr uint32_t TURN_OFFSET = RESIDENT_FULL_OFFSET + 8;
  static constexpr uint32_t SMEM_BYTES = TURN_OFFSET + 8 * WARPGROUPS;

  static_assert(TILE_M % (SHARES * MMA_M) == 0, "a warpgroup multiplies 64 rows at a time");
  static_assert(TILE_N == 128 || TILE_N == 192 || TILE_N == 256, "wgmma.cuh has these widths");
  static_assert(MMAS * ACCUMULATORS <= 192,
                "a thread holds 192 accumulators at most, beside the epilogue's registers");
  static_assert(CLUSTER == 1 || CLUSTER == 2, "clusters of 1 and 2 CTAs");
  static_assert(PREFETCH == 0 || RESIDENT,
                "prefetch is of A, which operand_b=resident waits for alone");
  static_assert(!RESIDENT || COLUMN_TILES % CLUSTER == 0,
                "with operand_b=resident a cluster's CTAs have columns of their own");
  static_assert(A_BOX_ROWS % 8 == 0 && B_BOX_ROWS % 8 == 0,
                "a part begins where the swizzle does, every 8 rows");
  static_assert(BOXES >= 1 && BOXES <= TILE_BOXES, "a warp has buffers for its tile's boxes");
  static_assert(ORDER != Order::snake_ || !RESIDENT,
                "order=snake turns in a row of tiles, of which operand_b=resident has one a CTA");
  static_assert(ORDER != Order::period_ || RESIDENT,
                "order=period goes down a strip, which operand_b=resident does");
  static_assert(COMBINED != Combined::registers_ || MMAS * ACCUMULATORS <= 96,
                "combined=registers holds half as many registers as there are accumulators");
  static_assert(COMBINED != Combined::registers_ || ORDER == Order::period_,
                "combined=registers reads the table anew whenever the tile's place in it changes");
  static_assert(SMEM_BYTES <= 227 * 1024, "a CTA has at most 232,448 bytes of shared memory");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(cluster, Config::CLUSTER);
KX_EXPORT(dynamic_smem_bytes, Config::SMEM_BYTES);
KX_EXPORT(tile_m, Config::TILE_M);
KX_EXPORT(tile_n, Config::TILE_N);
KX_EXPORT(tile_k, Config::TILE_K);
KX_EXPORT(a_box_rows, Config::A_BOX_ROWS);
KX_EXPORT(b_box_rows, Config::B_BOX_ROWS);
KX_EXPORT(out_box_rows, Config::BOX_ROWS);
KX_EXPORT(out_box_columns, Config::BOX_COLUMNS);
