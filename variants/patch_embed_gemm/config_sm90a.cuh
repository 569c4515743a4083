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

  // Where B's columns are the rows of an MMA, D comes out transposed.
  static constexpr bool RESIDENT = OPERAND_B == OperandB::resident_;
  static constexpr bool TRANSPOSED = OPERAND_B == OperandB::registers_;
  static constexpr bool KEEPS_COLUMNS = RESIDENT || TRANSPOSED;

  // Warps: two or three warpgroups multiply, the first warp of the last loads.
  static constexpr uint32_t MMA_M = 64;
  static constexpr uint32_t WARPGROUPS = TRANSPOSED ? TILE_N / MMA_M : 2;
  static constexpr uint32_t THREADS = 128 * (WARPGROUPS + 1);
  static constexpr uint32_t LOAD_REGISTERS = WARPGROUPS == 2 ? 40 : 24;
  static constexpr uint32_t MMA_REGISTERS = WARPGROUPS == 2 ? 232 : 160;

  // The tile of a CTA, and a warpgroup's share of it: some of its columns where D is transposed,
  // else the whole of it or some of its rows.
  static constexpr bool TAKES_TURNS = SCHEDULE != Schedule::cooperative_;
  static constexpr bool ALTERNATES = TAKES_TURNS && !TRANSPOSED;
  static constexpr uint32_t READERS = ALTERNATES ? 1 : WARPGROUPS;  // of a stage
  static constexpr uint32_t ROW_SHARES = TRANSPOSED ? 1 : READERS;
  static constexpr uint32_t MMAS = TRANSPOSED ? 1 : TILE_M / ROW_SHARES / MMA_M;
  // Registers a thread, for one of MMAS.
  static constexpr uint32_t ACCUMULATORS = (TRANSPOSED ? TILE_M : TILE_N) / 2;
  static constexpr uint32_t TILE_K = 128;
  static constexpr uint32_t MMA_K = 32;
  static constexpr uint32_t K_BLOCKS = K / TILE_K;
  static constexpr uint32_t COLUMN_TILES = N / TILE_N;
  // Tiles until the first row has the same place in the table again.
  static constexpr uint32_t TILE_PERIOD = PERIOD / 4;

  // K blocks of which the MMAs are running when the next one's are issued, and after which
  // schedule=overlapping passes the turn on. Where all warpgroups multiply by the same stages, none
  // can be a ring ahead, and the turn is only there to hold them apart: a K block of 64 rows is 128
  // cycles, fewer than the next warpgroup needs to wake up (0.850 of cuBLAS's time, 0.896 without
  // turns, 1.07 with the turn passed after the last block and 1 in flight).
  static constexpr uint32_t IN_FLIGHT = TRANSPOSED ? 2 : 1;
  static constexpr uint32_t PASS_AFTER = TRANSPOSED ? K_BLOCKS / 2 : K_BLOCKS;

  // A cluster's CTAs share B's columns (streamed) or A's rows (kept), each loading a part.
  static constexpr uint32_t A_BOX_ROWS = KEEPS_COLUMNS ? TILE_M / CLUSTER : TILE_M;
  static constexpr uint32_t B_BOX_ROWS = KEEPS_COLUMNS ? TILE_N : TILE_N / CLUSTER;
  static constexpr uint32_t A_BYTES = TILE_M * TILE_K;
  static constexpr uint32_t B_BYTES = TILE_N * TILE_K;
  static constexpr uint32_t STAGE_BYTES = KEEPS_COLUMNS ? A_BYTES : A_BYTES + B_BYTES;
  static constexpr uint32_t RESIDENT_BYTES = RESIDENT ? K_BLOCKS * B_BYTES : 0;
  // Where a cluster keeps its columns, this many kinds of clusters share the rows of A.
  static constexpr uint32_t STRIPS = KEEPS_COLUMNS ? N / (CLUSTER * TILE_N) : 1;

  // A warp stores boxes of 16 rows (its own of an MMA) by 64 columns (128 bytes, one swizzle row);
  // where D is transposed a warp has 16 columns, and a warpgroup stores boxes of 64 rows.
  static constexpr uint32_t BOX_ROWS = TRANSPOSED ? 64 : 16;
  static constexpr uint32_t BOX_COLUMNS = 64;
  static constexpr uint32_t BOX_BYTES = BOX_ROWS * BOX_COLUMNS * 2;
  static constexpr uint32_t TILE_BOXES = TRANSPOSED ? TILE_M / BOX_ROWS : TILE_N / BOX_COLUMNS;
  static constexpr uint32_t BUFFER_BYTES = STORE == Store::direct_ ? 0 : BOXES * BOX_BYTES;
  static constexpr uint32_t BUFFERS = TRANSPOSED ? WARPGROUPS : 4 * WARPGROUPS;

  // A row of the CTA's columns of the table, and 16 bytes: 8 rows of 16 bytes each fall into
  // different banks, as the number of 16-byte chunks in a row is odd.
  static constexpr uint32_t TABLE_PITCH = 2 * TILE_N + 16;
  static constexpr uint32_t TABLE_BYTES =
      COMBINED == Combined::resident_ ? PERIOD * TABLE_PITCH : 0;

  // Shared memory: resident B | stages | buffers of what is stored | table | mbarriers.
  static constexpr uint32_t STAGES_OFFSET = RESIDENT_BYTES;
  static constexpr uint32_t BUFFERS_OFFSET = STAGES_OFFSET + STAGES * STAGE_BYTES;
  static constexpr uint32_t TABLE_OFFSET = BUFFERS_OFFSET + BUFFERS * BUFFER_BYTES;
  static constexpr uint32_t FULL_OFFSET = TABLE_OFFSET + TABLE_BYTES;
  static constexpr uint32_t FREE_OFFSET = FULL_OFFSET + 8 * STAGES;
  static constexpr uint32_t RESIDENT_FULL_OFFSET = FREE_OFFSET + 8 * STAGES;
  static constexpr uint32_t TURN_OFFSET = RESIDENT_FULL_OFFSET + 8;
  static constexpr uint32_t SMEM_BYTES = TURN_OFFSET + 8 * WARPGROUPS;

  static_assert(TILE_M % (ROW_SHARES * MMA_M) == 0, "a warpgroup multiplies 64 rows at a time");
  static_assert(TILE_N == 128 || TILE_N == 192 || TILE_N == 256, "wgmma.cuh has these widths");
  static_assert(!TRANSPOSED || TILE_N <= 192,
                "with operand_b=registers 64 columns are a warpgroup's, of which there are 3 at most");
  static_assert(!TRANSPOSED || TILE_M * WARPGROUPS <= 256,
                "operand_b=registers takes 96 registers; 160 (3 warpgroups) leave 32 accumulators "
                "their room, 232 (2 warpgroups) 64");
  static_assert(TRANSPOSED == (COMBINED == Combined::resident_),
                "operand_b=registers frees the shared memory that combined=resident takes, whose "
                "fragments are transposed");
  static_assert(!TRANSPOSED || STORE == Store::tma_ || STORE == Store::tma_evict_first_,
                "with operand_b=registers a warpgroup stores together, by TMA");
  static_assert(MMAS * ACCUMULATORS <= 192,
                "a thread holds 192 accumulators at most, beside the epilogue's registers");
  static_assert(CLUSTER == 1 || CLUSTER == 2, "clusters of 1 and 2 CTAs");
  static_assert(PREFETCH == 0 || KEEPS_COLUMNS,
                "prefetch is of A, which goes through the stages alone where B is kept");
  static_assert(!KEEPS_COLUMNS || COLUMN_TILES % CLUSTER == 0,
                "where B is kept a cluster's CTAs have columns of their own");
  static_assert(A_BOX_ROWS % 8 == 0 && B_BOX_ROWS % 8 == 0,
                "a part begins where the swizzle does, every 8 rows");
  static_assert(BOXES >= 1 && (TRANSPOSED || BOXES <= TILE_BOXES),
                "a warp has buffers for its tile's boxes");
  static_assert(ORDER != Order::snake_ || !KEEPS_COLUMNS,
                "order=snake turns in a row of tiles, of which a CTA has one where B is kept");
  static_assert(ORDER != Order::period_ || RESIDENT,
                "order=period goes down a strip, for the table in registers of operand_b=resident");
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
