// The epilogue of one tile on Hopper: accumulator + combined, to BF16, to global memory.
//
// A warp works alone, on boxes of its 16 rows of an MMA by 64 columns. Lane l has of each row g =
// l / 4 and g + 8 the columns 8 j + 2 (l % 4) and the next, j = 0 to 7. By way of shared memory a
// box lies there as TMA wants it: rows of 128 bytes, the 16-byte chunk c of row r at c ^ (r % 8).
#pragma once

#include "config_sm90a.cuh"
#include "convert.cuh"
#include "ldst.cuh"
#include "matrix.cuh"
#include "tma.cuh"

// What a warp writes of one tile, and where it finds what it needs for it.
struct Slice {
  uint32_t row;            // first row of the warp's first MMA
  uint32_t column;         // first column of the tile
  uint32_t lane;
  uint32_t buffer;         // the warp's buffer in shared memory
  const uint16_t* table;   // combined, BF16
  const CUtensorMap* map;  // of out
  uint16_t* out;           // BF16

  // Place in the table of row `row` of the slice.
  __device__ uint32_t place(uint32_t row_in_slice) const {
    return (row + row_in_slice) % Config::PERIOD;
  }

  // After the last tile: until what lane 0 has stored by TMA is written.
  __device__ __forceinline__ void finish() const {
    if constexpr (Config::STORE == Store::tma_ || Config::STORE == Store::tma_evict_first_) {
      if (lane == 0) {
        kx::cp_async_bulk_wait_group<0>();
      }
      __syncwarp();
    }
  }
};

// The lane's values of the table for one box: words[2 * j + {0, 1}] are the pairs of column group j
// in rows g and g + 8.
__device__ __forceinline__ void load_table(uint32_t (&words)[16], const Slice& slice,
                                           uint32_t row, uint32_t column) {
  const uint32_t quad = slice.lane % 4;
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t place = slice.place(row + slice.lane / 4 + 8 * half);
    const uint16_t* first = slice.table + place * Config::N + slice.column + column;
    if constexpr (Config::COMBINED == Combined::inline_) {
#pragma unroll
      for (uint32_t j = 0; j < 8; ++j) {
        kx::ld_global_nc<1>(words + 2 * j + half, first + 8 * j + 2 * quad);
      }
    } else {
      // Each 32 columns of a row in the order of the fragments: [4 quads][4 groups][2 columns].
#pragma unroll
      for (uint32_t block = 0; block < 2; ++block) {
        uint32_t four[4];
        kx::ld_global_nc<4>(four, first + 32 * block + 8 * quad);
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
          words[2 * (4 * block + j) + half] = four[j];
        }
      }
    }
  }
}

// The table's values of a whole slice, kept from tile to tile.
struct Table {
  static constexpr bool IS_KEPT = Config::COMBINED == Combined::registers_;
  static constexpr uint32_t BOXES = IS_KEPT ? Config::MMAS * Config::TILE_BOXES : 1;
  uint32_t words[BOXES][16];
  uint32_t place = Config::PERIOD;  // of the first row of what is held; none

  __device__ __forceinline__ void start_tile(const Slice& slice) {
    if (IS_KEPT && slice.place(0) != place) {
      place = slice.place(0);
#pragma unroll
      for (uint32_t box = 0; box < BOXES; ++box) {
        load_table(words[box], slice, box / Config::TILE_BOXES * Config::MMA_M,
                   box % Config::TILE_BOXES * Config::BOX_COLUMNS);
      }
    }
  }
};

// Accumulators and pairs of the table to pairs of BF16.
template <uint32_t PAIRS>
__device__ __forceinline__ void add_table(uint32_t* pairs, const float* d,
                                          const uint32_t (&table)[PAIRS]) {
#pragma unroll
  for (uint32_t i = 0; i < PAIRS; ++i) {
    pairs[i] = kx::cvt_rn_bf16x2_f32(d[2 * i + 1] + kx::high_bf16(table[i]),
                                     d[2 * i] + kx::low_bf16(table[i]));
  }
}

// The 16 pairs of each lane to a buffer: four stores of four 8 x 8 matrices, rows 0 to 7 and 8 to
// 15 of two column groups.
__device__ __forceinline__ void stage_box(uint32_t buffer, const uint32_t (&pairs)[16],
                                          uint32_t lane) {
  const uint32_t row = lane % 16;
#pragma unroll
  for (uint32_t j = 0; j < 8; j += 2) {
    const uint32_t chunk = (j + lane / 16) ^ row % 8;
    kx::stmatrix_x4(buffer + 128 * row + 16 * chunk, pairs + 2 * j);
  }
}

__device__ __forceinline__ void store_direct(const Slice& slice, uint32_t row, uint32_t column,
                                             const uint32_t (&pairs)[16]) {
  uint16_t* first = slice.out + uint64_t{slice.row + row + slice.lane / 4} * Config::N +
                    slice.column + column + 2 * (slice.lane % 4);
#pragma unroll
  for (uint32_t j = 0; j < 8; ++j) {
    kx::st_global<1>(first + 8 * j, pairs + 2 * j);
    kx::st_global<1>(first + 8 * Config::N + 8 * j, pairs + 2 * j + 1);
  }
}

// 8 lanes a row, 16 bytes each: 4 rows at a time.
__device__ __forceinline__ void store_rows(const Slice& slice, uint32_t row, uint32_t column,
                                           uint32_t buffer) {
  const uint32_t chunk = slice.lane % 8;
#pragma unroll
  for (uint32_t i = slice.lane / 8; i < Config::BOX_ROWS; i += 4) {
    uint32_t words[4];
    kx::ld_shared<4>(words, buffer + 128 * i + 16 * (chunk ^ i % 8));
    kx::st_global<4>(slice.out + uint64_t{slice.row + row + i} * Config::N + slice.column +
                         column + 8 * chunk,
                     words);
  }
}

// One thread stores a box by TMA, as a group of its own.
__device__ __forceinline__ void store_by_tma(const CUtensorMap* map, uint32_t column, uint32_t row,
                                             uint32_t buffer) {
  if constexpr (Config::STORE == Store::tma_evict_first_) {
    kx::cp_async_bulk_tensor_2d_global_shared_cache_hint(map, column, row, buffer);
  } else {
    kx::cp_async_bulk_tensor_2d_global_shared(map, column, row, buffer);
  }
  kx::cp_async_bulk_commit_group();
}

__device__ __forceinline__ void store_box(const Slice& slice, uint32_t row, uint32_t column,
                                          uint32_t buffer, const uint32_t (&pairs)[16]) {
  if constexpr (Config::STORE == Store::direct_) {
    store_direct(slice, row, column, pairs);
  } else if constexpr (Config::STORE == Store::staged_) {
    __syncwarp();  // the lanes have read what the buffer held before
    stage_box(buffer, pairs, slice.lane);
    __syncwarp();
    store_rows(slice, row, column, buffer);
  } else {
    // Lane 0 stores every box, and so is the one that can wait for the buffer to be read.
    if (slice.lane == 0) {
      kx::cp_async_bulk_wait_group_read<Config::BOXES - 1>();
    }
    __syncwarp();
    stage_box(buffer, pairs, slice.lane);
    kx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (slice.lane == 0) {
      store_by_tma(slice.map, slice.column + column, slice.row + row, buffer);
    }
  }
}

// `next_buffer` goes round the warp's buffers, through all of its tiles.
__device__ __forceinline__ void epilogue(
    const Slice& slice, const float (&d)[Config::MMAS][Config::ACCUMULATORS], Table& table,
    uint32_t& next_buffer) {
#pragma unroll
  for (uint32_t mma = 0; mma < Config::MMAS; ++mma) {
#pragma unroll
    for (uint32_t box = 0; box < Config::TILE_BOXES; ++box) {
      const uint32_t row = mma * Config::MMA_M;
      const uint32_t column = box * Config::BOX_COLUMNS;
      uint32_t pairs[16];
      if constexpr (Table::IS_KEPT) {
        add_table(pairs, d[mma] + 32 * box, table.words[mma * Config::TILE_BOXES + box]);
      } else {
        load_table(table.words[0], slice, row, column);
        add_table(pairs, d[mma] + 32 * box, table.words[0]);
      }
      store_box(slice, row, column, slice.buffer + next_buffer * Config::BOX_BYTES, pairs);
      next_buffer = next_buffer + 1 == Config::BOXES ? 0 : next_buffer + 1;
    }
  }
}
