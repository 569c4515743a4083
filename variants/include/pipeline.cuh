// The place of one role in a ring of mbarriers.
#pragma once

#include <cstdint>

namespace kx {

// Producer and consumer each keep their own. `phase` is the parity of the round through the ring: the
// consumer waits for `phase` of the full barrier, the producer for `phase ^ 1` of the free one.
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

}  // namespace kx
