// The load warp of a CTA on Hopper: TMA copies, ahead of the warpgroups that multiply.
#pragma once

#include "mbarrier.cuh"
#include "pipeline.cuh"
#include "tiles_sm90a.cuh"
#include "tma.cuh"

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
  Cta::Ring ring;
  for (uint32_t index = cta.first_tile; index < cta.last_tile; index += cta.step) {
    const Tile tile = tile_at(cta, index);
    const uint32_t ahead = index + Config::PREFETCH * cta.step;
    const bool is_prefetched = Config::PREFETCH > 0 && ahead < cta.last_tile;
    const uint32_t prefetched_row =
        is_prefetched ? tile_at(cta, ahead).row + cta.rank * Config::A_BOX_ROWS : 0;
    for (uint32_t k = 0; k < Config::K; k += Config::TILE_K) {
      // The strips' clusters read the same rows at about the same time: each brings its share.
      if (is_prefetched && k / Config::TILE_K % Config::STRIPS == cta.strip) {
        kx::cp_async_bulk_prefetch_tensor_2d(a, k, prefetched_row);
      }
      const uint32_t stage = cta.stage(ring.stage);
      const uint32_t full = cta.full(ring.stage);
      cta.acquire(ring, full);
      load_box<Config::KEEPS_COLUMNS>(stage, a, k, tile.row, Config::A_BOX_ROWS, cta, full);
      if constexpr (!Config::KEEPS_COLUMNS) {
        load_box<true>(stage + Config::A_BYTES, b, k, tile.column, Config::B_BOX_ROWS, cta, full);
      }
      ring.advance();
    }
  }
}
