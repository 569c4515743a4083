// What warps tell each other by: vector clocks, proxy fences, mbarriers. Python keeps them in clocks.py
// and mbarrier.py, and compiled code changes them in place where there is nothing to report.
#pragma once
#include <cstdint>

namespace kx {

// native_layout.py has the same fields in the same order.

// fence.proxy.async of one state space.
struct ProxyFences {
  int64_t* times;  // [warps, kept, 32]: when each thread made its last ones, the latest first
  int64_t* seen;   // [warps, 2 * agents], at the very last one
};

struct Mbarrier {
  int64_t number;   // among those that Python has made
  int64_t cta;      // the resident one that it lies in
  int64_t expected, pending, phase, transactions;
  int64_t made;     // the time of its init,
  int64_t maker;    // and the place of the warp
  int64_t lost;     // whether a store or a copy has destroyed it
  int64_t* rows[2];  // [2 * agents]: what arrivals have seen; of the current phase: rows[flipped],
  int64_t flipped;   // of completed phases: the other one
  int64_t is_releasing, has_released;  // whether there are any

  int64_t* releasing() const { return rows[flipped]; }
  int64_t* released() const { return rows[!flipped]; }
};

constexpr int kChanged = 512;

struct Synchronisation {
  int64_t* seen;  // [warps, 2 * agents]: see clocks.py
  int64_t warps, agents;
  uint8_t* wide;  // [warps]
  int64_t* fenced_init;  // [warps]
  ProxyFences proxies[2];  // of shared and of global memory
  int64_t kept;            // fences of each
  int64_t ordered;         // whether clocks tell anything
  Mbarrier** mbarriers;    // by arena offset / 8; null while there is none
  int64_t resident, cluster_size, stride, scratch;  // of CTAs, and their shared memory in the arena
  const uint8_t* ended;  // [resident]
  int64_t* used;         // [resident, warps]: when a warp last used another CTA's memory, or 0
  int64_t* waits;        // [warps, 2], by row of a set: see below

  // For Python to take up:
  int64_t fences;         // proxies of which a fence was made, a bit each
  int64_t waited;         // whether a wait was passed: `waits` has each warp's mbarrier, and what of it
  int64_t changed_count;  // mbarriers with a new phase
  int64_t changed[kChanged];
};

}  // namespace kx
