// The epilogue of a tile whose accumulator is transposed: plus the table in shared memory, to BF16,
// to global memory.
//
// A warpgroup has 64 columns of the output, which are the rows of its MMAs: of each 8 rows of the
// output j, lane l of warp w has d[4 j + {0, 1}], rows 8 j + 2 (l % 4) and the next of column
// 16 w + l / 4, and d[4 j + {2, 3}], the same rows of column 16 w + 8 + l / 4. Matrices of 8 rows by
// 8 columns are transposed on their way from the table and to the buffer, where 64 rows of 128 bytes
// lie as TMA wants them: the 16-byte chunk c of row r at c ^ (r % 8).
#pragma once

#include "barrier.cuh"
#include "epilogue_sm90a.cuh"
#include "ldst.cuh"
#include "matrix.cuh"
#include "tiles_sm90a.cuh"
#include "tma.cuh"

constexpr uint32_t TABLE_BARRIER = 1;  // of all that multiply
constexpr uint32_t FIRST_WARPGROUP_BARRIER = 2;

// The CTA's columns of all rows of the table to shared memory; `table` is the first of them.
__device__ __forceinline__ void copy_table(const Cta& cta, const uint16_t* table) {
  constexpr uint32_t CHUNKS = Config::TILE_N / 8;  // of 16 bytes, a row
  constexpr uint32_t THREADS = 128 * Config::WARPGROUPS;
  for (uint32_t i = threadIdx.x; i < Config::PERIOD * CHUNKS; i += THREADS) {
    const uint32_t row = i / CHUNKS;
    const uint32_t chunk = i % CHUNKS;
    uint32_t words[4];
    kx::ld_global_nc<4>(words, table + row * Config::N + 8 * chunk);
    kx::st_shared<4>(cta.smem + Config::TABLE_OFFSET + row * Config::TABLE_PITCH + 16 * chunk,
                     words);
  }
  kx::bar_sync(TABLE_BARRIER, THREADS);
}

// What a warp writes, and where it finds what it needs for it.
struct TransposedSlice {
  uint32_t barrier;   // of the warpgroup
  bool is_storer;     // the one thread of the warpgroup that stores
  uint32_t lane_row;  // of the matrices that the lane addresses, in the first 16 rows of a box
  uint32_t table;     // of the lane's matrices in row 0 of the table
  uint32_t buffer;    // of the lane's matrices in row 0 of the first buffer ...
  uint32_t chunk;     // ... and where in each row
  uint32_t first_buffer;
  uint32_t next_buffer = 0;
  const CUtensorMap* map;

  // Lanes 0 to 7 address columns 0 to 7 of the warp in the first 8 rows, lanes 8 to 15 its other
  // columns, lanes 16 to 31 the same in the next 8 rows.
  __device__ __forceinline__ TransposedSlice(const Cta& cta, uint32_t warpgroup, uint32_t warp,
                                             uint32_t lane, const CUtensorMap* map)
      : barrier(FIRST_WARPGROUP_BARRIER + warpgroup),
        is_storer(warp == 0 && lane == 0),
        lane_row(lane % 8 + 8 * (lane / 16)),
        map(map) {
    const uint32_t column_chunk = 2 * warp + lane / 8 % 2;
    table = cta.smem + Config::TABLE_OFFSET + 128 * warpgroup + 16 * column_chunk;
    first_buffer = cta.smem + Config::BUFFERS_OFFSET + warpgroup * Config::BUFFER_BYTES;
    buffer = first_buffer + 128 * lane_row;
    chunk = 16 * (column_chunk ^ lane % 8);
  }

  // 64 rows from `row` on, and 64 columns from `column` on: 32 accumulators a lane.
  __device__ __forceinline__ void store_box(const float* d, uint32_t row, uint32_t column) {
    uint32_t pairs[16];
    uint32_t place = (row + lane_row) % Config::PERIOD;
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      uint32_t words[4];
      kx::ldmatrix_x4_trans(words, table + place * Config::TABLE_PITCH);
      add_table(pairs + 4 * j, d + 8 * j, words);
      place += 16;
      place = place < Config::PERIOD ? place : place - Config::PERIOD;
    }
    if (is_storer) {
      kx::cp_async_bulk_wait_group_read<Config::BOXES - 1>();
    }
    kx::bar_sync(barrier, 128);
    const uint32_t offset = next_buffer * Config::BOX_BYTES;
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      kx::stmatrix_x4_trans(buffer + offset + chunk + 128 * 16 * j, pairs + 4 * j);
    }
    kx::fence_proxy_async_shared_cta();
    kx::bar_sync(barrier, 128);
    if (is_storer) {
      store_by_tma(map, column, row, first_buffer + offset);
    }
    next_buffer = next_buffer + 1 == Config::BOXES ? 0 : next_buffer + 1;
  }

  __device__ __forceinline__ void finish() const {
    if (is_storer) {
      kx::cp_async_bulk_wait_group<0>();
    }
    __syncwarp();
  }
};
