// The main loop of a warpgroup on Hopper.
#pragma once

#include "cluster.cuh"
#include "ldst.cuh"
#include "mbarrier.cuh"
#include "pipeline.cuh"
#include "tiles_sm90a.cuh"
#include "wgmma.cuh"

// A warp has read a stage: says so to every CTA that writes to it.
__device__ __forceinline__ void release_stage(const Cta& cta, uint32_t stage, uint32_t lane) {
  if (lane < Config::CLUSTER) {
    kx::mbarrier_arrive_relaxed_cluster(kx::mapa_shared_cluster(cta.free(stage), lane));
  }
}

// Lets the next warpgroup multiply.
__device__ __forceinline__ void pass_turn(const Cta& cta, uint32_t warpgroup, uint32_t lane) {
  if (lane == 0) {
    const uint32_t next = warpgroup + 1 == Config::WARPGROUPS ? 0 : warpgroup + 1;
    kx::mbarrier_arrive_relaxed_cluster(cta.turn(next));
  }
  __syncwarp();
}

// The MMAs of a K block with operands in shared memory: MMAS times 64 of the tile's rows from
// `first_row` on, by all of its columns.
struct SharedOperands {
  uint32_t first_row;

  template <uint32_t ACCUMULATORS>
  __device__ __forceinline__ void issue(float (&d)[Config::MMAS][ACCUMULATORS], const Cta& cta,
                                        uint32_t stage, uint32_t block) const {
    const uint64_t a = kx::wgmma_k_major_128b_descriptor(stage + first_row * Config::TILE_K);
    const uint64_t b = kx::wgmma_k_major_128b_descriptor(
        Config::RESIDENT ? cta.smem + block * Config::B_BYTES : stage + Config::A_BYTES);
#pragma unroll
    for (uint32_t k = 0; k < Config::TILE_K; k += Config::MMA_K) {
#pragma unroll
      for (uint32_t mma = 0; mma < Config::MMAS; ++mma) {
        const uint32_t row_bytes = mma * Config::MMA_M * Config::TILE_K;
        kx::wgmma_mma_async(d[mma], a + (row_bytes + k) / 16, b + k / 16, block > 0 || k > 0);
      }
    }
  }
};

// The same with B in registers, 64 of its columns a warpgroup, which are the rows of an MMA: D comes
// out transposed, B's columns by the tile's rows.
struct OperandInRegisters {
  uint32_t words[Config::K / Config::MMA_K][4];

  // `column` is the first of the warp's 16.
  __device__ __forceinline__ void load(const uint8_t* b, uint32_t column, uint32_t lane) {
    const uint8_t* row = b + (column + lane / 4) * Config::K + 4 * (lane % 4);
#pragma unroll
    for (uint32_t step = 0; step < Config::K / Config::MMA_K; ++step) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        kx::ld_global_nc<1>(words[step] + i,
                            row + i % 2 * 8 * Config::K + i / 2 * 16 + step * Config::MMA_K);
      }
    }
  }

  template <uint32_t ACCUMULATORS>
  __device__ __forceinline__ void issue(float (&d)[1][ACCUMULATORS], const Cta&, uint32_t stage,
                                        uint32_t block) const {
    const uint64_t a = kx::wgmma_k_major_128b_descriptor(stage);
    constexpr uint32_t STEPS = Config::TILE_K / Config::MMA_K;
#pragma unroll
    for (uint32_t step = 0; step < STEPS; ++step) {
      kx::wgmma_mma_async(d[0], words[STEPS * block + step], a + step * Config::MMA_K / 16,
                          block > 0 || step > 0);
    }
  }
};

// A warpgroup's part of a tile; the MMAs of IN_FLIGHT K blocks are running while the next one's are
// issued.
//
// Warpgroups that alternate pass the turn on when the tile's last stage has come, no earlier: one
// that waits for a stage while a use of it before the last is still to come would find the parity
// of the phase before that one, and go on (11,749 wrong elements of 713 million).
template <typename Operands>
__device__ __forceinline__ void multiply(const Cta& cta, Cta::Ring& ring, uint32_t warpgroup,
                                         uint32_t lane, const Operands& operands,
                                         float (&d)[Config::MMAS][Config::ACCUMULATORS]) {
  uint32_t stages[Config::K_BLOCKS];
  kx::wgmma_fence();
#pragma unroll
  for (uint32_t block = 0; block < Config::K_BLOCKS; ++block) {
    kx::wait_for_copies(cta.full(ring.stage), ring.phase);
    operands.issue(d, cta, cta.stage(ring.stage), block);
    kx::wgmma_commit_group();
    stages[block] = ring.stage;
    if (block >= Config::IN_FLIGHT) {
      kx::wgmma_wait_group<Config::IN_FLIGHT>();
      release_stage(cta, stages[block - Config::IN_FLIGHT], lane);
    }
    if (Config::SCHEDULE == Schedule::overlapping_ && block + 1 == Config::PASS_AFTER) {
      pass_turn(cta, warpgroup, lane);
    }
    ring.advance();
  }
#pragma unroll
  for (uint32_t mma = 0; mma < Config::MMAS; ++mma) {
    kx::wgmma_wait_group(d[mma]);
  }
#pragma unroll
  for (uint32_t block = Config::K_BLOCKS - Config::IN_FLIGHT; block < Config::K_BLOCKS; ++block) {
    release_stage(cta, stages[block], lane);
  }
}
