// patch_embed_gemm on Hopper: out[m, 768] = a[m, 768] * b[768, 768]^T + combined[row % 196, 768].
//
// E4M3 operands, F32 accumulator in registers, BF16 table and output. Persistent: a CTA an SM, two
// warpgroups that multiply and store, and a warp that loads ahead of them.
//
// Shared memory of a CTA (byte offsets for operand_b=resident, tiles of 64 x 192, 8 stages, 1 box):
//
//        0  B: 6 K blocks of 192 x 128   (K-major, 128-byte swizzle, like A)
//  147,456  stage 0: A 64 x 128          (and B's K block where operand_b=streamed)
//  155,648  stage 1 ...
//  212,992  buffer of the first warp: a box of 16 rows by 64 columns ...
//  229,376  mbarriers: full[STAGES], free[STAGES], resident_full, turn[2]
//
// Barriers. With a cluster, each CTA loads a part of what its CTAs share and sends it to all: `full`
// counts bytes from every CTA, and `free` the warps of every CTA that read the stage.
//
//                  ── full[stage] ─▶
//   load warp                          warps of the warpgroup that has the tile
//                  ◀─ free[stage] ──
//                                      ── turn[other] ─▶ the other warpgroup (if they take turns)
//
//   barrier        arrivals a phase                       who arrives
//   full           1, and STAGE_BYTES                     the load warp; TMA (bytes)
//   free           CLUSTER * 4 * SHARES                   a lane of each warp that has read it
//   resident_full  1, and RESIDENT_BYTES                  the load warp; TMA (bytes)
//   turn           4                                      a lane of each warp of the other one
#include "cluster.cuh"
#include "config_sm90a.cuh"
#include "elect.cuh"
#include "epilogue_sm90a.cuh"
#include "mbarrier.cuh"
#include "pipeline.cuh"
#include "registers.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

// What a role knows of its CTA; addresses are shared::cta.
struct Cta {
  uint32_t rank;
  uint32_t smem;
  uint32_t strip;       // of the columns that the cluster keeps
  uint32_t worker;      // rank of the cluster among those of its strip
  uint32_t workers;     // clusters of a strip
  uint32_t row_tiles;   // of the output
  uint32_t first_tile;  // of the cluster
  uint32_t last_tile;   // one past it
  uint32_t step;        // from one of its tiles to the next

  __device__ uint32_t stage(uint32_t i) const {
    return smem + Config::STAGES_OFFSET + i * Config::STAGE_BYTES;
  }
  __device__ uint32_t full(uint32_t i) const { return smem + Config::FULL_OFFSET + 8 * i; }
  __device__ uint32_t free(uint32_t i) const { return smem + Config::FREE_OFFSET + 8 * i; }
  __device__ uint32_t resident_full() const { return smem + Config::RESIDENT_FULL_OFFSET; }
  __device__ uint32_t turn(uint32_t warpgroup) const {
    return smem + Config::TURN_OFFSET + 8 * warpgroup;
  }
};

// First row and column of a CTA's tile.
struct Tile {
  uint32_t row;
  uint32_t column;
};

// The tiles of one of `workers` workers in a strip with order=period: windows of as many periods of
// the table as there are workers, a window's tiles sorted by their place in the period, and each
// worker TILE_PERIOD of them in sequence, which begin in two or three different rows of the table.
// All workers are in the same window, so that they touch few pages. The last window is narrower,
// and what is left of the last period comes after it.
struct ByPeriod {
  uint32_t worker;
  uint32_t workers;
  uint32_t full_windows;
  uint32_t last_periods;  // of the last window
  uint32_t leftover;      // tiles

  __device__ __forceinline__ ByPeriod(uint32_t row_tiles, uint32_t worker, uint32_t workers)
      : worker(worker), workers(workers) {
    const uint32_t periods = row_tiles / Config::TILE_PERIOD;
    full_windows = periods / workers;
    last_periods = periods % workers;
    leftover = row_tiles % Config::TILE_PERIOD;
  }

  __device__ __forceinline__ uint32_t first_of(uint32_t tiles, uint32_t worker) const {
    return worker * tiles / workers;
  }

  __device__ __forceinline__ uint32_t count_of(uint32_t tiles) const {
    return first_of(tiles, worker + 1) - first_of(tiles, worker);
  }

  __device__ __forceinline__ uint32_t in_last_window() const {
    return count_of(last_periods * Config::TILE_PERIOD);
  }

  __device__ __forceinline__ uint32_t count() const {
    return full_windows * Config::TILE_PERIOD + in_last_window() + count_of(leftover);
  }

  // The worker's `index`th row tile.
  __device__ __forceinline__ uint32_t row_tile(uint32_t index) const {
    const uint32_t window = index / Config::TILE_PERIOD;
    uint32_t periods = workers;
    uint32_t place = worker * Config::TILE_PERIOD + index % Config::TILE_PERIOD;
    if (window >= full_windows) {
      const uint32_t rest = index - full_windows * Config::TILE_PERIOD;
      if (rest >= in_last_window()) {
        return (full_windows * workers + last_periods) * Config::TILE_PERIOD +
               first_of(leftover, worker) + rest - in_last_window();
      }
      periods = last_periods;
      place = first_of(last_periods * Config::TILE_PERIOD, worker) + rest;
    }
    const uint32_t first_window = min(window, full_windows) * workers;
    return (first_window + place % periods) * Config::TILE_PERIOD + place / periods;
  }
};

__device__ __forceinline__ Tile tile_at(const Cta& cta, uint32_t index) {
  if constexpr (Config::RESIDENT) {
    uint32_t row_tile = index;
    if constexpr (Config::ORDER == Order::period_) {
      row_tile = ByPeriod(cta.row_tiles, cta.worker, cta.workers).row_tile(index);
    }
    const uint32_t column_tile = cta.strip * Config::CLUSTER + cta.rank;
    return {row_tile * Config::TILE_M, column_tile * Config::TILE_N};
  } else {
    const uint32_t row_tile = index / Config::COLUMN_TILES * Config::CLUSTER + cta.rank;
    const uint32_t step = index % Config::COLUMN_TILES;
    const bool is_backward = Config::ORDER == Order::snake_ && index / Config::COLUMN_TILES % 2;
    const uint32_t column_tile = is_backward ? Config::COLUMN_TILES - 1 - step : step;
    return {row_tile * Config::TILE_M, column_tile * Config::TILE_N};
  }
}

// Tiles of cluster `cluster` of `clusters`.
__device__ __forceinline__ void deal_tiles(Cta& cta, uint32_t cluster, uint32_t clusters) {
  cta.strip = cluster % Config::STRIPS;
  cta.worker = cluster / Config::STRIPS;
  cta.workers = clusters / Config::STRIPS;
  const uint32_t tiles = Config::RESIDENT
                             ? cta.row_tiles
                             : cta.row_tiles / Config::CLUSTER * Config::COLUMN_TILES;
  if constexpr (Config::ORDER == Order::strided_) {
    cta.first_tile = cta.worker;
    cta.last_tile = tiles;
    cta.step = cta.workers;
  } else if constexpr (Config::ORDER == Order::period_) {
    cta.first_tile = 0;
    cta.last_tile = ByPeriod(cta.row_tiles, cta.worker, cta.workers).count();
    cta.step = 1;
  } else {
    cta.first_tile = cta.worker * tiles / cta.workers;
    cta.last_tile = (cta.worker + 1) * tiles / cta.workers;
    cta.step = 1;
  }
}

// A box of what the cluster's CTAs share, part `rank` of `stage`, to all of them; or just a box.
template <bool IS_SHARED>
__device__ __forceinline__ void load_box(uint32_t destination, const CUtensorMap* map,
                                         uint32_t column, uint32_t row, uint32_t box_rows,
                                         const Cta& cta, uint32_t full) {
  if constexpr (IS_SHARED && Config::CLUSTER > 1) {
    constexpr uint16_t ALL_CTAS = (1 << Config::CLUSTER) - 1;
    const uint32_t part = cta.rank * box_rows;
    kx::cp_async_bulk_tensor_2d_multicast(destination + part * Config::TILE_K, map, column,
                                          row + part, full, ALL_CTAS);
  } else {
    kx::cp_async_bulk_tensor_2d<1>(destination, map, column, row, full);
  }
}

// One thread of each CTA: B once where it stays, then every K block of every tile.
__device__ __forceinline__ void load_role(const Cta& cta, const CUtensorMap* a,
                                          const CUtensorMap* b) {
  if constexpr (Config::RESIDENT) {
    kx::mbarrier_arrive_expect_tx_relaxed_cluster(cta.resident_full(), Config::RESIDENT_BYTES);
    const uint32_t column = tile_at(cta, 0).column;
    for (uint32_t block = 0; block < Config::K_BLOCKS; ++block) {
      load_box<false>(cta.smem + block * Config::B_BYTES, b, block * Config::TILE_K, column,
                      Config::B_BOX_ROWS, cta, cta.resident_full());
    }
  }
  kx::Pipeline<Config::STAGES> ring;
  for (uint32_t index = cta.first_tile; index < cta.last_tile; index += cta.step) {
    const Tile tile = tile_at(cta, index);
    const uint32_t ahead = index + Config::PREFETCH * cta.step;
    const bool is_prefetched = Config::PREFETCH > 0 && ahead < cta.last_tile;
    const uint32_t prefetched_row =
        is_prefetched ? tile_at(cta, ahead).row + cta.rank * Config::A_BOX_ROWS : 0;
    for (uint32_t k = 0; k < Config::K; k += Config::TILE_K) {
      if (is_prefetched) {
        kx::cp_async_bulk_prefetch_tensor_2d(a, k, prefetched_row);
      }
      const uint32_t stage = cta.stage(ring.stage);
      const uint32_t full = cta.full(ring.stage);
      kx::wait_for_phase(cta.free(ring.stage), ring.phase ^ 1);
      kx::mbarrier_arrive_expect_tx_relaxed_cluster(full, Config::STAGE_BYTES);
      load_box<Config::RESIDENT>(stage, a, k, tile.row, Config::A_BOX_ROWS, cta, full);
      if constexpr (!Config::RESIDENT) {
        load_box<true>(stage + Config::A_BYTES, b, k, tile.column, Config::B_BOX_ROWS, cta, full);
      }
      ring.advance();
    }
  }
}

// A warp has read a stage: says so to every CTA that writes to it.
__device__ __forceinline__ void release_stage(const Cta& cta, uint32_t stage, uint32_t lane) {
  if (lane < Config::CLUSTER) {
    kx::mbarrier_arrive_relaxed_cluster(kx::mapa_shared_cluster(cta.free(stage), lane));
  }
}

// Lets the other warpgroup multiply.
__device__ __forceinline__ void pass_turn(const Cta& cta, uint32_t warpgroup, uint32_t lane) {
  if (lane == 0) {
    kx::mbarrier_arrive_relaxed_cluster(cta.turn(warpgroup ^ 1));
  }
  __syncwarp();
}

// One warpgroup: its rows of a tile, K block by K block; one block's MMAs are in flight while the
// next one's are issued.
//
// Warpgroups that take turns pass it on when the tile's last stage has come, no earlier: a
// warpgroup that waits for a stage while a use of it before the last is still to come would find
// the parity of the phase before that one, and go on (11,749 wrong elements of 713 million).
__device__ __forceinline__ void multiply(const Cta& cta, kx::Pipeline<Config::STAGES>& ring,
                                         uint32_t warpgroup, uint32_t first_row, uint32_t lane,
                                         float (&d)[Config::MMAS][Config::ACCUMULATORS]) {
  uint32_t previous = 0;
  kx::wgmma_fence();
#pragma unroll
  for (uint32_t block = 0; block < Config::K_BLOCKS; ++block) {
    const uint32_t stage = cta.stage(ring.stage);
    const uint64_t a = kx::wgmma_k_major_128b_descriptor(stage + first_row * Config::TILE_K);
    const uint64_t b = kx::wgmma_k_major_128b_descriptor(
        Config::RESIDENT ? cta.smem + block * Config::B_BYTES : stage + Config::A_BYTES);
    kx::wait_for_copies(cta.full(ring.stage), ring.phase);
#pragma unroll
    for (uint32_t k = 0; k < Config::TILE_K; k += Config::MMA_K) {
#pragma unroll
      for (uint32_t mma = 0; mma < Config::MMAS; ++mma) {
        const uint32_t row_bytes = mma * Config::MMA_M * Config::TILE_K;
        kx::wgmma_mma_async(d[mma], a + (row_bytes + k) / 16, b + k / 16, block > 0 || k > 0);
      }
    }
    kx::wgmma_commit_group();
    if (block > 0) {
      kx::wgmma_wait_group<1>();
      release_stage(cta, previous, lane);
    }
    previous = ring.stage;
    ring.advance();
  }
  if constexpr (Config::SCHEDULE == Schedule::overlapping_) {
    pass_turn(cta, warpgroup, lane);
  }
#pragma unroll
  for (uint32_t mma = 0; mma < Config::MMAS; ++mma) {
    kx::wgmma_wait_group(d[mma]);
  }
  release_stage(cta, previous, lane);
}

// One of the two warpgroups: its tiles, or its rows of every tile.
__device__ __forceinline__ void multiply_role(const Cta& cta, uint32_t warpgroup, uint32_t warp,
                                              const uint16_t* combined, const CUtensorMap* out_map,
                                              uint16_t* out) {
  const uint32_t first_row =
      Config::TAKES_TURNS ? 0 : warpgroup * (Config::TILE_M / Config::WARPGROUPS);
  Slice slice;
  slice.lane = threadIdx.x % 32;
  slice.buffer = cta.smem + Config::BUFFERS_OFFSET + warp * Config::BUFFER_BYTES;
  slice.table = combined;
  slice.map = out_map;
  slice.out = out;
  Table table;
  uint32_t next_buffer = 0;
  uint32_t turn_phase = warpgroup ^ 1;  // the first warpgroup begins
  kx::Pipeline<Config::STAGES> ring;
  const auto skip_tile = [&] {
#pragma unroll
    for (uint32_t block = 0; block < Config::K_BLOCKS; ++block) {
      ring.advance();
    }
  };
  uint32_t index = cta.first_tile;
  if (Config::TAKES_TURNS && warpgroup == 1) {
    index += cta.step;
    skip_tile();
  }
  if constexpr (Config::RESIDENT) {
    kx::wait_for_copies(cta.resident_full(), 0);
  }
  for (; index < cta.last_tile; index += cta.step * (Config::TAKES_TURNS ? 2 : 1)) {
    const Tile tile = tile_at(cta, index);
    slice.row = tile.row + first_row + 16 * (warp % 4);
    slice.column = tile.column;
    table.start_tile(slice);
    float d[Config::MMAS][Config::ACCUMULATORS];
    if constexpr (Config::TAKES_TURNS) {
      kx::wait_for_phase(cta.turn(warpgroup), turn_phase);
      turn_phase ^= 1;
    }
    multiply(cta, ring, warpgroup, first_row, slice.lane, d);
    if constexpr (Config::SCHEDULE == Schedule::pingpong_) {
      pass_turn(cta, warpgroup, slice.lane);
    }
    if constexpr (Config::TAKES_TURNS) {
      skip_tile();
    }
    epilogue(slice, d, table, next_buffer);
  }
  if constexpr (Config::STORE == Store::tma_ || Config::STORE == Store::tma_evict_first_) {
    if (slice.lane == 0) {
      kx::cp_async_bulk_wait_group<0>();
    }
    __syncwarp();
  }
}

// One thread of each CTA.
__device__ __forceinline__ void init_barriers(const Cta& cta) {
  for (uint32_t i = 0; i < Config::STAGES; ++i) {
    kx::mbarrier_init(cta.full(i), 1);
    kx::mbarrier_init(cta.free(i), Config::CLUSTER * 4 * Config::SHARES);
  }
  kx::mbarrier_init(cta.resident_full(), 1);
  for (uint32_t i = 0; i < Config::WARPGROUPS; ++i) {
    kx::mbarrier_init(cta.turn(i), 4);
  }
  kx::fence_mbarrier_init_release_cluster();
}

extern "C" __global__ void __cluster_dims__(Config::CLUSTER, 1, 1)
    __launch_bounds__(Config::THREADS, 1)
    patch_embed_gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                     const __grid_constant__ CUtensorMap out_map, const uint16_t* combined,
                     uint16_t* out, uint32_t row_tiles) {
  extern __shared__ __align__(1024) uint8_t smem[];
  // From lane 0, so that ptxas knows it to be the same in all lanes.
  const uint32_t warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  Cta cta;
  cta.rank = kx::cluster_ctarank();
  cta.smem = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  cta.row_tiles = row_tiles;
  deal_tiles(cta, blockIdx.x / Config::CLUSTER, gridDim.x / Config::CLUSTER);

  if (threadIdx.x == 0) {
    kx::prefetch_tensormap(&a);
    kx::prefetch_tensormap(&b);
    init_barriers(cta);
  }
  __syncwarp();
  kx::barrier_cluster_arrive();
  kx::barrier_cluster_wait();

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
    multiply_role(cta, warp / 4, warp, combined, &out_map, out);
  }

  // No CTA leaves while another still sends to it or signals it.
  kx::barrier_cluster_arrive();
  kx::barrier_cluster_wait();
}
