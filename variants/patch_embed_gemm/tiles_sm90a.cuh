// What a CTA is of the grid on Hopper, where its parts lie in shared memory, and which tiles are its
// own.
#pragma once

#include "config_sm90a.cuh"
#include "mbarrier.cuh"
#include "stages.cuh"

// What a role knows of its CTA.
struct Cta : Stages<Config> {
  uint32_t strip;       // of the columns that the cluster keeps
  uint32_t worker;      // rank of the cluster among those of its strip
  uint32_t workers;     // clusters of a strip
  uint32_t row_tiles;   // of the output
  uint32_t first_tile;  // of the cluster
  uint32_t last_tile;   // one past it
  uint32_t step;        // from one of its tiles to the next

  using Stages::Stages;

  __device__ uint32_t resident_full() const { return smem + Config::RESIDENT_FULL_OFFSET; }
  __device__ uint32_t turn(uint32_t warpgroup) const {
    return smem + Config::TURN_OFFSET + 8 * warpgroup;
  }

  // One thread of each CTA.
  __device__ __forceinline__ void init_barriers() const {
    init_stages(1, Config::CLUSTER * 4 * Config::READERS);
    kx::mbarrier_init(resident_full(), 1);
    for (uint32_t i = 0; i < Config::WARPGROUPS; ++i) {
      kx::mbarrier_init(turn(i), 4);
    }
    kx::fence_mbarrier_init_release_cluster();
  }
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

// A CTA's tile.
__device__ __forceinline__ Tile tile_at(const Cta& cta, uint32_t index) {
  if constexpr (Config::KEEPS_COLUMNS) {
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
  const uint32_t tiles = Config::KEEPS_COLUMNS
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
