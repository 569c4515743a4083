// patch_embed_gemm: out[m, 768] = a[m, 768] * b[768, 768]^T + combined[row % 196, 768].
//
// E4M3 operands, F32 accumulator, BF16 table and output. Persistent: a CTA an SM, a cluster of
// CTA_GROUP CTAs a tile, the epilogue of one tile under the multiplication of the next.
//
// Shared memory of a CTA (byte offsets for 4 stages of 32,768 bytes; Config has all of them):
//
//        0  stage 0: A 128 x 128 | B 128 x 128   (both K-major, 128-byte swizzle)
//   32,768  stage 1 ...
//  131,072  TMEM address, mbarriers: full[STAGES], free[STAGES], mainloop_done[2], epilogue_free[2]
//  131,200  buffer of the first epilogue warp: 32 rows of 528 bytes (where a variant has buffers)
//  148,096  buffer of the second ...
//
// Tensor memory, in each CTA: its 128 rows of the tile are the lanes; accumulator i is in columns
// [i * TILE_N, (i + 1) * TILE_N).
//
// Barriers. CTA 0 of the cluster issues the MMAs for both, so `full` and `epilogue_free` are waited
// for in CTA 0 only, and CTA 1 arrives on CTA 0's; a commit arrives on the `free` and
// `mainloop_done` of both.
//
//                  ── full[stage] ─▶                    ── mainloop_done[i] ─▶
//   load warp,                        MMA warp                                  epilogue warps,
//   each CTA                          of CTA 0                                  each CTA
//                  ◀─ free[stage] ──                    ◀─ epilogue_free[i] ──
//
//   barrier        arrivals a phase                 who arrives
//   full           CTA_GROUP, and STAGE_BYTES each  a lane of each load warp; TMA (bytes)
//   free           1                                commit of the stage's MMAs
//   mainloop_done  1                                commit of the tile's MMAs
//   epilogue_free  CTA_GROUP * EPILOGUE_WARPS * 32  every epilogue thread
#include "barrier.cuh"
#include "cluster.cuh"
#include "config.cuh"
#include "descriptor.cuh"
#include "elect.cuh"
#include "epilogue.cuh"
#include "mbarrier.cuh"
#include "pipeline.cuh"
#include "stages.cuh"
#include "tcgen05.cuh"
#include "tma.cuh"

// What a role knows of its CTA.
struct Cta : Stages<Config> {
  uint32_t first_tile;
  uint32_t last_tile;  // one past it

  using Stages::Stages;

  __device__ uint32_t mainloop_done(uint32_t i) const {
    return smem + Config::MAINLOOP_DONE_OFFSET + 8 * i;
  }
  __device__ uint32_t epilogue_free(uint32_t i) const {
    return smem + Config::EPILOGUE_FREE_OFFSET + 8 * i;
  }

  // One thread of each CTA.
  __device__ __forceinline__ void init_barriers() const {
    init_stages(Config::CTA_GROUP, 1);
    for (uint32_t i = 0; i < Config::ACCUMULATORS; ++i) {
      kx::mbarrier_init(mainloop_done(i), 1);
      kx::mbarrier_init(epilogue_free(i), Config::CTA_GROUP * Config::EPILOGUE_WARPS * 32);
    }
    kx::fence_mbarrier_init_release_cluster();
  }
};

// Snake order: column tiles forwards in even rows of tiles and backwards in odd ones, so that tiles
// that follow each other share their rows of A or their columns of B (without it the published
// kernel lost 10 to 40 %).
__device__ __forceinline__ Tile tile_at(uint32_t index) {
  const uint32_t row_tile = index / Config::COLUMN_TILES;
  const uint32_t step = index % Config::COLUMN_TILES;
  const uint32_t column_tile = row_tile % 2 == 0 ? step : Config::COLUMN_TILES - 1 - step;
  return {row_tile * Config::TILE_M, column_tile * Config::TILE_N};
}

// One thread of each CTA: brings this CTA's rows of A and of B for every K block of every tile.
__device__ __forceinline__ void load_role(const Cta& cta, const CUtensorMap* a,
                                          const CUtensorMap* b) {
  const uint32_t full_of_cta_0 = kx::mapa_shared_cluster(cta.full(0), 0);
  Cta::Ring ring;
  for (uint32_t index = cta.first_tile; index < cta.last_tile; ++index) {
    const Tile tile = tile_at(index);
    const uint32_t a_row = tile.row + cta.rank * Config::CTA_M;
    const uint32_t b_row = tile.column + cta.rank * Config::B_ROWS;
    for (uint32_t k = 0; k < Config::K; k += Config::TILE_K) {
      const uint32_t stage = cta.stage(ring.stage);
      const uint32_t full = full_of_cta_0 + 8 * ring.stage;
      cta.acquire(ring, full);
      kx::cp_async_bulk_tensor_2d<Config::CTA_GROUP>(stage, a, k, a_row, full);
      kx::cp_async_bulk_tensor_2d<Config::CTA_GROUP>(stage + Config::A_BYTES, b, k, b_row, full);
      ring.advance();
    }
  }
  // The last commits arrive here from CTA 0: this CTA must still be there.
  for (uint32_t i = 0; i < Config::STAGES; ++i) {
    kx::wait_for_phase(cta.free(ring.stage), ring.phase ^ 1);
    ring.advance();
  }
}

// One thread of CTA 0: multiplies every tile, for both CTAs.
__device__ __forceinline__ void mma_role(const Cta& cta, uint32_t tmem) {
  constexpr uint32_t INSTRUCTION = kx::e4m3_f32_instruction(Config::TILE_M, Config::TILE_N);
  constexpr uint16_t ALL_CTAS = (1 << Config::CTA_GROUP) - 1;
  Cta::Ring ring;
  kx::Pipeline<Config::ACCUMULATORS> accumulator;
  for (uint32_t index = cta.first_tile; index < cta.last_tile; ++index) {
    const uint32_t d = tmem + accumulator.stage * Config::TILE_N;
    kx::wait_for_phase(cta.epilogue_free(accumulator.stage), accumulator.phase ^ 1);
    kx::tcgen05_fence_after_thread_sync();
#pragma unroll
    for (uint32_t block = 0; block < Config::K_BLOCKS; ++block) {
      const uint32_t stage = cta.stage(ring.stage);
      const uint64_t a = kx::k_major_128b_descriptor(stage);
      const uint64_t b = kx::k_major_128b_descriptor(stage + Config::A_BYTES);
      kx::wait_for_copies(cta.full(ring.stage), ring.phase);
      kx::tcgen05_fence_after_thread_sync();
#pragma unroll
      for (uint32_t k = 0; k < Config::TILE_K; k += Config::MMA_K) {
        kx::tcgen05_mma_f8f6f4<Config::CTA_GROUP>(d, kx::advance_k(a, k), kx::advance_k(b, k),
                                                  INSTRUCTION, block > 0 || k > 0);
      }
      kx::tcgen05_commit<Config::CTA_GROUP>(cta.free(ring.stage), ALL_CTAS);
      ring.advance();
    }
    kx::tcgen05_commit<Config::CTA_GROUP>(cta.mainloop_done(accumulator.stage), ALL_CTAS);
    accumulator.advance();
  }
}

// An epilogue warp waits for the tile's accumulator. Each warp asks the barrier itself, or the
// first one does and tells the others (F7: 0.764 ms, against 0.743 where each asks).
__device__ __forceinline__ void wait_for_mainloop(uint32_t mainloop_done, uint32_t phase,
                                                  uint32_t warp) {
  if (Config::MAINLOOP_WAIT == MainloopWait::poll_ || warp == Config::FIRST_EPILOGUE_WARP) {
    kx::wait_for_phase(mainloop_done, phase);
  }
  if constexpr (Config::MAINLOOP_WAIT == MainloopWait::broadcast_) {
    kx::bar_sync<1>(32 * Config::EPILOGUE_WARPS);
  }
  __syncwarp();
  kx::tcgen05_fence_after_thread_sync();
}

// One epilogue warp of each CTA: its 32 rows of every tile, and those of the tile's columns that
// are its.
template <class Columns>
__device__ __forceinline__ void epilogue_role(const Cta& cta, uint32_t warp, uint32_t tmem,
                                              Columns columns, const uint16_t* combined,
                                              uint16_t* out) {
  const uint32_t lane = threadIdx.x % 32;
  // A warp reaches the 32 TMEM lanes of its rank modulo 4 only (PTX ISA 9.1, section 9.7.16.8.1).
  const uint32_t row_group = warp % 4;
  const uint32_t free_of_cta_0 = kx::mapa_shared_cluster(cta.epilogue_free(0), 0);
  Slice slice;
  slice.buffer = cta.smem + Config::BUFFERS_OFFSET +
                 (warp - Config::FIRST_EPILOGUE_WARP) * Config::BUFFER_BYTES;
  slice.table = combined;
  slice.out = out;
  kx::Pipeline<Config::ACCUMULATORS> accumulator;
  for (uint32_t index = cta.first_tile; index < cta.last_tile; ++index) {
    const Tile tile = tile_at(index);
    slice.row = tile.row + cta.rank * Config::CTA_M + 32 * row_group;
    slice.column = tile.column;
    slice.tmem = tmem + (32 * row_group << 16) + accumulator.stage * Config::TILE_N;
    if constexpr (Config::COMBINED == Combined::smem_prefetch_) {
      copy_table(slice, columns, lane);
    }
    wait_for_mainloop(cta.mainloop_done(accumulator.stage), accumulator.phase, warp);
    if constexpr (Config::COMBINED == Combined::prestage_) {
      copy_table(slice, columns, lane);
    }
    phase_1(slice, columns, lane);
    kx::tcgen05_fence_before_thread_sync();
    if constexpr (Config::HAS_BUFFERS) {
      __syncwarp();  // phase 2, or the next tile's table, crosses the lanes' rows
    }
    if constexpr (Config::STORE == Store::staged_) {
      phase_2(slice, columns, lane);
      __syncwarp();  // the next tile's phase 1 writes the rows that this one's phase 2 has read
    }
    // Only now, as published; an arrival before phase 2 was a later step (0.543 -> 0.542 ms).
    kx::mbarrier_arrive_relaxed_cluster(free_of_cta_0 + 8 * accumulator.stage);
    accumulator.advance();
  }
}

// Gives an epilogue warp its columns: all, or half where two warps share a row group.
template <class Role>
__device__ __forceinline__ void with_columns(uint32_t warp, Role role) {
  constexpr uint32_t ALL = Config::TILE_N;
  constexpr uint32_t HALF = Config::TILE_N / 2;
  const uint32_t rank = warp - Config::FIRST_EPILOGUE_WARP;
  const bool is_left = rank + 4 < Config::EPILOGUE_WARPS;
  const bool is_right = rank >= 4;
  if constexpr (Config::EPILOGUE_BOUNDS == EpilogueBounds::runtime_) {
    role(RuntimeColumns{is_right ? HALF : 0, is_left ? HALF : ALL});
  } else if constexpr (Config::EPILOGUE_WARPS == 4) {
    role(ConstantColumns<0, ALL>{});
  } else if (is_left) {
    role(ConstantColumns<0, HALF>{});
  } else if (is_right) {
    role(ConstantColumns<HALF, ALL>{});
  } else {
    role(ConstantColumns<0, ALL>{});
  }
}

// Every thread of the cluster.
__device__ __forceinline__ void cluster_sync() {
  kx::tcgen05_fence_before_thread_sync();
  barrier_cluster();
  kx::tcgen05_fence_after_thread_sync();
}

extern "C" __global__ void __cluster_dims__(Config::CTA_GROUP, 1,
                                            1) __launch_bounds__(Config::THREADS, 1)
    patch_embed_gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                     const uint16_t* combined, uint16_t* out, uint32_t row_tiles) {
  extern __shared__ __align__(1024) uint8_t smem[];
  const uint32_t warp = warp_rank();
  const uint32_t tiles = row_tiles * Config::COLUMN_TILES;
  const uint32_t cluster = blockIdx.x / Config::CTA_GROUP;
  const uint32_t clusters = gridDim.x / Config::CTA_GROUP;
  Cta cta(smem);
  cta.first_tile = cluster * tiles / clusters;
  cta.last_tile = (cluster + 1) * tiles / clusters;

  if (warp == Config::LOAD_WARP) {
    if (kx::elect_sync()) {
      prefetch_tensormaps(a, b);
      cta.init_barriers();
    }
    __syncwarp();
  } else if (warp == Config::MMA_WARP) {
    kx::tcgen05_alloc<Config::CTA_GROUP, Config::TMEM_COLUMNS>(cta.smem +
                                                               Config::TMEM_ADDRESS_OFFSET);
    kx::tcgen05_relinquish_alloc_permit<Config::CTA_GROUP>();
  }
  cluster_sync();
  uint32_t tmem;
  kx::ld_shared<1>(&tmem, cta.smem + Config::TMEM_ADDRESS_OFFSET);

  if (warp == Config::LOAD_WARP) {
    if (kx::elect_sync()) {
      load_role(cta, &a, &b);
    }
    __syncwarp();
  } else if (warp == Config::MMA_WARP) {
    if (cta.rank == 0 && kx::elect_sync()) {
      mma_role(cta, tmem);
    }
    __syncwarp();
  } else {
    with_columns(warp,
                 [&](auto columns) { epilogue_role(cta, warp, tmem, columns, combined, out); });
  }

  // No CTA leaves, and no tensor memory is freed, while the other still works on it or signals it.
  cluster_sync();
  if (warp == Config::MMA_WARP) {
    kx::tcgen05_dealloc<Config::CTA_GROUP, Config::TMEM_COLUMNS>(tmem);
  }
}
