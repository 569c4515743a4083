// patch_embed_gemm on Hopper: out[m, 768] = a[m, 768] * b[768, 768]^T + combined[row % 196, 768].
//
// E4M3 operands, F32 accumulator in registers, BF16 table and output. Persistent: a CTA an SM, two
// or three warpgroups that multiply and store, and a warp that loads ahead of them.
//
// Shared memory of a CTA (byte offsets for operand_b=resident, tiles of 64 x 192, 8 stages, 1 box):
//
//        0  B: 6 K blocks of 192 x 128   (K-major, 128-byte swizzle, like A)
//  147,456  stage 0: A 64 x 128          (and B's K block where operand_b=streamed)
//  155,648  stage 1 ...
//  212,992  buffer of the first warp: a box of 16 rows by 64 columns ...
//  229,376  mbarriers: full[STAGES], free[STAGES], resident_full, turn[WARPGROUPS]
//
// Barriers. With a cluster, each CTA loads a part of what its CTAs share and sends it to all: `full`
// counts bytes from every CTA, and `free` the warps of every CTA that read the stage.
//
//                  ── full[stage] ─▶
//   load warp                          warps of the warpgroup that has the tile
//                  ◀─ free[stage] ──
//                                      ── turn[next] ─▶ the next warpgroup (if they take turns)
//
//   barrier        arrivals a phase                       who arrives
//   full           1, and STAGE_BYTES                     the load warp; TMA (bytes)
//   free           CLUSTER * 4 * READERS                  a lane of each warp that has read it
//   resident_full  1, and RESIDENT_BYTES                  the load warp; TMA (bytes)
//   turn           4                                      a lane of each warp of the one before
#include "elect.cuh"
#include "epilogue_sm90a.cuh"
#include "epilogue_transposed_sm90a.cuh"
#include "load_sm90a.cuh"
#include "multiply_sm90a.cuh"
#include "pipeline.cuh"
#include "registers.cuh"
#include "stages.cuh"
#include "tiles_sm90a.cuh"

// A warpgroup whose operands are in shared memory: its tiles, or its rows of every tile.
template <typename Operands>
__device__ __forceinline__ void multiply_role(const Cta& cta, uint32_t warpgroup, uint32_t warp,
                                              const uint16_t* combined, const CUtensorMap* out_map,
                                              uint16_t* out) {
  const uint32_t first_row =
      Config::ALTERNATES ? 0 : warpgroup * (Config::TILE_M / Config::WARPGROUPS);
  Slice slice;
  slice.lane = threadIdx.x % 32;
  slice.buffer = cta.smem + Config::BUFFERS_OFFSET + warp * Config::BUFFER_BYTES;
  slice.table = combined;
  slice.map = out_map;
  slice.out = out;
  Table table;
  uint32_t next_buffer = 0;
  uint32_t turn_phase = warpgroup == 0;  // the first warpgroup begins
  Cta::Ring ring;
  const auto skip_tile = [&] {
#pragma unroll
    for (uint32_t block = 0; block < Config::K_BLOCKS; ++block) {
      ring.advance();
    }
  };
  uint32_t index = cta.first_tile;
  if (Config::ALTERNATES && warpgroup == 1) {
    index += cta.step;
    skip_tile();
  }
  if constexpr (Config::RESIDENT) {
    kx::wait_for_copies(cta.resident_full(), 0);
  }
  for (; index < cta.last_tile; index += cta.step * (Config::ALTERNATES ? 2 : 1)) {
    const Tile tile = tile_at(cta, index);
    slice.row = tile.row + first_row + 16 * (warp % 4);
    slice.column = tile.column;
    table.start_tile(slice);
    float d[Config::MMAS][Config::ACCUMULATORS];
    if constexpr (Config::ALTERNATES) {
      kx::wait_for_phase(cta.turn(warpgroup), turn_phase);
      turn_phase ^= 1;
    }
    multiply(cta, ring, warpgroup, slice.lane, Operands{first_row}, d);
    if constexpr (Config::SCHEDULE == Schedule::pingpong_) {
      pass_turn(cta, warpgroup, slice.lane);
    }
    if constexpr (Config::ALTERNATES) {
      skip_tile();
    }
    epilogue(slice, d, table, next_buffer);
  }
  slice.finish();
}

// A warpgroup that keeps 64 of B's columns in registers: its columns of every tile.
template <typename Operands>
__device__ __forceinline__ void transposed_role(const Cta& cta, uint32_t warpgroup, uint32_t warp,
                                                const uint8_t* b, const uint16_t* combined,
                                                const CUtensorMap* out_map) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first_column = tile_at(cta, 0).column;
  Operands operands;
  operands.load(b, first_column + 16 * warp, lane);
  copy_table(cta, combined + first_column);
  TransposedSlice slice(cta, warpgroup, warp % 4, lane, out_map);
  uint32_t turn_phase = warpgroup == 0;  // the first warpgroup begins
  Cta::Ring ring;
  for (uint32_t index = cta.first_tile; index < cta.last_tile; index += cta.step) {
    float d[Config::MMAS][Config::ACCUMULATORS];
    if constexpr (Config::TAKES_TURNS) {
      kx::wait_for_phase(cta.turn(warpgroup), turn_phase);
      turn_phase ^= 1;
    }
    multiply(cta, ring, warpgroup, lane, operands, d);
    if constexpr (Config::SCHEDULE == Schedule::pingpong_) {
      pass_turn(cta, warpgroup, lane);
    }
    const uint32_t row = tile_at(cta, index).row;
#pragma unroll
    for (uint32_t box = 0; box < Config::TILE_BOXES; ++box) {
      slice.store_box(d[0] + 32 * box, row + Config::BOX_ROWS * box,
                      first_column + Config::BOX_COLUMNS * warpgroup);
    }
  }
  slice.finish();
}

extern "C" __global__ void __cluster_dims__(Config::CLUSTER, 1, 1)
    __launch_bounds__(Config::THREADS, 1)
    patch_embed_gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                     const __grid_constant__ CUtensorMap out_map, const uint8_t* b_bytes,
                     const uint16_t* combined, uint16_t* out, uint32_t row_tiles) {
  extern __shared__ __align__(1024) uint8_t smem[];
  const uint32_t warp = warp_rank();
  Cta cta(smem);
  cta.row_tiles = row_tiles;
  deal_tiles(cta, blockIdx.x / Config::CLUSTER, gridDim.x / Config::CLUSTER);

  if (threadIdx.x == 0) {
    prefetch_tensormaps(a, b);
    cta.init_barriers();
  }
  __syncwarp();
  barrier_cluster();

  if (warp / 4 == Config::WARPGROUPS) {
    if constexpr (Config::REGISTERS == Registers::moved_) {
      kx::setmaxnreg_dec<Config::LOAD_REGISTERS>();
    }
    if (warp % 4 == 0) {
      if (kx::elect_sync()) {
        load_role(cta, &a, &b);
      }
      __syncwarp();
    }
  } else {
    if constexpr (Config::REGISTERS == Registers::moved_) {
      kx::setmaxnreg_inc<Config::MMA_REGISTERS>();
    }
    if constexpr (Config::TRANSPOSED) {
      transposed_role<OperandInRegisters>(cta, warp / 4, warp, b_bytes, combined, &out_map);
    } else {
      multiply_role<SharedOperands>(cta, warp / 4, warp, combined, &out_map, out);
    }
  }

  // No CTA leaves while another still sends to it or signals it.
  barrier_cluster();
}
