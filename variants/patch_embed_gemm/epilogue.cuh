// The epilogue of one tile: accumulator + combined, to BF16, to global memory.
//
// A warp has 32 rows, a lane each, and all columns of the tile or half of them. Phase 1 goes
// through its columns in chunks of 32: accumulator from tensor memory, table from global or shared
// memory, add, and store: to global memory, 32 or 16 bytes a lane, or to the warp's buffer. From
// there phase 2 writes whole rows: 32 lanes side by side in one row, in place of 32 lanes 1,536
// bytes apart.
#pragma once

#include "config.cuh"
#include "convert.cuh"
#include "ldst.cuh"
#include "tcgen05.cuh"

// The warp's columns of the tile: known to the compiler, which then unrolls phase 1, or not.
template <uint32_t BEGIN, uint32_t END>
struct ConstantColumns {
  static constexpr uint32_t begin = BEGIN;
  static constexpr uint32_t end = END;
  static constexpr uint32_t UNROLL = (END - BEGIN) / Config::CHUNK;
  // A lane's share of a row, in 32-bit words.
  static constexpr uint32_t ROW_WORDS = (END - BEGIN) / 2 / 32;
};

struct RuntimeColumns {
  uint32_t begin;
  uint32_t end;
  static constexpr uint32_t UNROLL = 1;
};

// What a warp writes of one tile, and where it finds what it needs for it.
struct Slice {
  uint32_t row;           // first of the warp's 32 rows of the output
  uint32_t column;        // first column of the tile
  uint32_t tmem;          // accumulator: the warp's lanes, the tile's first column
  uint32_t buffer;        // the warp's buffer in shared memory
  const uint16_t* table;  // combined, BF16
  uint16_t* out;          // BF16
};

// The accumulator's values of one chunk. When the next chunk's are asked for is the axis tmem_load.
template <TmemLoad LOAD>
struct AccumulatorChunk {
  uint32_t values[32];

  __device__ __forceinline__ void start(uint32_t tmem) {
    if constexpr (LOAD == TmemLoad::x32_) {
      kx::tcgen05_ld_32x32b_x32(values, tmem);
    } else {
      kx::tcgen05_ld_32x32b_x16(values, tmem);
    }
    if constexpr (LOAD == TmemLoad::split_) {
      kx::tcgen05_ld_32x32b_x16(values + 16, tmem + 16);
    }
  }

  // Before the chunk's columns 16 * half and on are read. x16 has the other half in flight
  // meanwhile.
  __device__ __forceinline__ void wait(uint32_t half, uint32_t tmem, bool more) {
    if constexpr (LOAD == TmemLoad::x16_) {
      kx::tcgen05_wait_ld<16>(values + 16 * half);
      if (half == 0 || more) {
        kx::tcgen05_ld_32x32b_x16(values + 16 * (1 - half), tmem + 16 * (1 + half));
      }
    } else if (half == 0) {
      kx::tcgen05_wait_ld<32>(values);
    }
  }

  // After them: their registers may hold the next chunk's.
  __device__ __forceinline__ void refill(uint32_t half, uint32_t tmem, bool more) {
    if (LOAD == TmemLoad::split_ && more) {
      kx::tcgen05_ld_32x32b_x16(values + 16 * half, tmem + 32 + 16 * half);
    } else if (LOAD == TmemLoad::x32_ && half == 1 && more) {
      kx::tcgen05_ld_32x32b_x32(values, tmem + 32);
    }
  }
};

// Copies the table's rows for this slice into the warp's buffer, lanes side by side in a row. All
// 32 loads are in flight at once, in up to 128 registers; the published phase 0 was unrolled
// likewise (0.630 -> 0.858 ms on a B200).
template <class Columns>
__device__ __forceinline__ void copy_table(const Slice& slice, Columns columns, uint32_t lane) {
  constexpr uint32_t WORDS = Columns::ROW_WORDS;
  const uint32_t first = slice.row % Config::PERIOD;
  const uint16_t* table = slice.table + slice.column + columns.begin + 2 * WORDS * lane;
  const uint32_t buffer = slice.buffer + 4 * WORDS * lane;
  uint32_t words[32][WORDS];
#pragma unroll
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t row = first + i < Config::PERIOD ? first + i : first + i - Config::PERIOD;
    kx::ld_global_nc<WORDS>(words[i], table + row * Config::N);
  }
#pragma unroll
  for (uint32_t i = 0; i < 32; ++i) {
    kx::st_shared<WORDS>(buffer + i * Config::PITCH_BYTES, words[i]);
  }
  __syncwarp();
}

// The lane's 32 values of the table for the chunk at `column`, as 16 pairs.
template <class Columns>
__device__ __forceinline__ void load_table(uint32_t* words, const Slice& slice, Columns columns,
                                           uint32_t column, uint32_t lane) {
  if constexpr (Config::COMBINED == Combined::inline_ || Config::COMBINED == Combined::blocked_) {
    const uint32_t first = slice.row % Config::PERIOD;
    const uint16_t* table = slice.table;
    if constexpr (Config::COMBINED == Combined::inline_) {
      table += (first + lane) % Config::PERIOD * Config::N + slice.column + column;
    } else {
      // [7 row blocks][24 column blocks][32 rows][32 columns]; 224 rows, as a slice begins at 192
      // at most (256 and 196 have the common factor 4), so that first + lane needs no wrapping.
      const uint32_t block = (first + lane) / 32 * (Config::N / 32) + (slice.column + column) / 32;
      table += block * 32 * 32 + (first + lane) % 32 * 32;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      kx::ld_global_nc<4>(words + 4 * i, table + 8 * i);
    }
  } else {
    const uint32_t row = slice.buffer + lane * Config::PITCH_BYTES + 2 * (column - columns.begin);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      kx::ld_shared<4>(words + 4 * i, row + 16 * i);
    }
  }
}

// Stores 16 columns of the lane's row, 8 pairs, from column `column` of the tile on.
template <class Columns>
__device__ __forceinline__ void store_pairs(const Slice& slice, Columns columns, uint32_t column,
                                            uint32_t lane, const uint32_t* pairs) {
  if constexpr (Config::STORE == Store::staged_) {
    const uint32_t row = slice.buffer + lane * Config::PITCH_BYTES + 2 * (column - columns.begin);
    kx::st_shared<4>(row, pairs);
    kx::st_shared<4>(row + 16, pairs + 4);
  } else {
    uint16_t* row = slice.out + uint64_t{slice.row + lane} * Config::N + slice.column + column;
    if constexpr (Config::STORE == Store::direct_v8_) {
      kx::st_global<8>(row, pairs);
    } else {
      kx::st_global<4>(row, pairs);
      kx::st_global<4>(row + 8, pairs + 4);
    }
  }
}

template <class Columns>
__device__ __forceinline__ void phase_1(const Slice& slice, Columns columns, uint32_t lane) {
  AccumulatorChunk<Config::TMEM_LOAD> accumulator;
  accumulator.start(slice.tmem + columns.begin);
#pragma unroll(Columns::UNROLL)
  for (uint32_t column = columns.begin; column < columns.end; column += Config::CHUNK) {
    const uint32_t tmem = slice.tmem + column;
    const bool more = column + Config::CHUNK < columns.end;
    uint32_t table[16];
    load_table(table, slice, columns, column, lane);
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      accumulator.wait(half, tmem, more);
      uint32_t pairs[8];
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t* values = accumulator.values + 16 * half + 2 * i;
        const uint32_t addend = table[8 * half + i];
        pairs[i] = kx::cvt_rn_bf16x2_f32(__uint_as_float(values[1]) + kx::high_bf16(addend),
                                         __uint_as_float(values[0]) + kx::low_bf16(addend));
      }
      accumulator.refill(half, tmem, more);
      store_pairs(slice, columns, column + 16 * half, lane, pairs);
    }
  }
}

// Writes the buffer's 32 rows to global memory, lanes side by side in a row, PHASE2_UNROLL at a
// time.
template <class Columns>
__device__ __forceinline__ void phase_2(const Slice& slice, Columns columns, uint32_t lane) {
  constexpr uint32_t WORDS = Columns::ROW_WORDS;
  const uint32_t buffer = slice.buffer + 4 * WORDS * lane;
  uint16_t* out =
      slice.out + uint64_t{slice.row} * Config::N + slice.column + columns.begin + 2 * WORDS * lane;
#pragma unroll 1
  for (uint32_t row = 0; row < 32; row += Config::PHASE2_UNROLL) {
    uint32_t words[Config::PHASE2_UNROLL][WORDS];
#pragma unroll
    for (uint32_t i = 0; i < Config::PHASE2_UNROLL; ++i) {
      kx::ld_shared<WORDS>(words[i], buffer + (row + i) * Config::PITCH_BYTES);
    }
#pragma unroll
    for (uint32_t i = 0; i < Config::PHASE2_UNROLL; ++i) {
      kx::st_global<WORDS>(out + (row + i) * Config::N, words[i]);
    }
  }
}
