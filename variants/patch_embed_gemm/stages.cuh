// What the kernels of every architecture are built on: a CTA's place in its cluster, and the ring
// of stages through which its load warp hands operands to the warps that multiply.
#pragma once

#include <cstdint>

#include "cluster.cuh"
#include "mbarrier.cuh"
#include "pipeline.cuh"
#include "tma.cuh"

// First row and column of a tile of the output.
struct Tile {
  uint32_t row;
  uint32_t column;
};

// From lane 0, so that ptxas knows it to be the same in all lanes, and keeps what depends on it in
// uniform registers (on sm_100a 59 R2UR in the SASS, in place of 264).
__device__ __forceinline__ uint32_t warp_rank() {
  return __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
}

// One thread of each CTA, before anything is copied.
template <class... Maps>
__device__ __forceinline__ void prefetch_tensormaps(const Maps&... maps) {
  (kx::prefetch_tensormap(&maps), ...);
}

// Every thread of the cluster.
__device__ __forceinline__ void barrier_cluster() {
  kx::barrier_cluster_arrive();
  kx::barrier_cluster_wait();
}

// A CTA and its stages, which lie in shared memory as Config says; addresses are shared::cta.
//
// A stage has two barriers: `full` completes when its operands have come, `free` when they have
// been read. The load warp and each reader go round with a Ring of their own.
template <class Config>
struct Stages {
  using Ring = kx::Pipeline<Config::STAGES>;

  uint32_t rank;  // in the cluster
  uint32_t smem;

  __device__ __forceinline__ explicit Stages(const void* dynamic_smem)
      : rank(kx::cluster_ctarank()),
        smem(static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_smem))) {}

  __device__ uint32_t stage(uint32_t i) const {
    return smem + Config::STAGES_OFFSET + i * Config::STAGE_BYTES;
  }
  __device__ uint32_t full(uint32_t i) const { return smem + Config::FULL_OFFSET + 8 * i; }
  __device__ uint32_t free(uint32_t i) const { return smem + Config::FREE_OFFSET + 8 * i; }

  // One thread of each CTA; arrivals a phase.
  __device__ __forceinline__ void init_stages(uint32_t full_arrivals,
                                              uint32_t free_arrivals) const {
    for (uint32_t i = 0; i < Config::STAGES; ++i) {
      kx::mbarrier_init(full(i), full_arrivals);
      kx::mbarrier_init(free(i), free_arrivals);
    }
  }

  // The load warp: waits until the ring's stage is free, and announces its bytes on the barrier
  // `full`, which may be another CTA's (shared::cluster address).
  __device__ __forceinline__ void acquire(const Ring& ring, uint32_t full) const {
    kx::wait_for_phase(free(ring.stage), ring.phase ^ 1);
    kx::mbarrier_arrive_expect_tx_relaxed_cluster(full, Config::STAGE_BYTES);
  }
};
