// The place of one role in a ring of mbarriers, and its waits.
#pragma once

#include <cstdint>

#include "mbarrier.cuh"

namespace kx {

// Producer and consumer each keep their own. `phase` is the parity of the round through the ring:
// the consumer waits for `phase` of the full barrier, the producer for `phase ^ 1` of the free one.
template <uint32_t STAGES>
struct Pipeline {
  uint32_t stage = 0;
  uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Waits until the phase of this parity has completed.
__device__ __forceinline__ void wait_for_phase(uint32_t barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity_relaxed_cluster(barrier, parity)) {
  }
}

// The same for a barrier on which copies complete.
__device__ __forceinline__ void wait_for_copies(uint32_t barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity_acquire_cta(barrier, parity)) {
  }
}

}  // namespace kx
