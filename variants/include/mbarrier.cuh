// mbarrier objects: PTX ISA 9.1, section 9.7.13.15.
//
// Addresses are 32-bit: shared::cta for a CTA's own barriers, shared::cluster (from mapa) where a
// wrapper says so.
#pragma once

#include <cstdint>

namespace kx {

// Which threads' memory accesses a wait orders: those of the own CTA, or of the whole cluster.
enum class Scope { cta, cluster };

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes the inits before it visible to the cluster: section 9.7.13.4 (membar, fence).
__device__ __forceinline__ void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives on a barrier of any CTA of the cluster (shared::cluster address).
__device__ __forceinline__ void mbarrier_arrive_release_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}

// Expects `bytes` more of asynchronous copies, then arrives (shared::cluster address).
__device__ __forceinline__ void mbarrier_arrive_expect_tx_release_cluster(uint32_t barrier,
                                                                          uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

// Whether the phase of this parity has completed; may suspend the thread for a while first.
template <Scope SCOPE = Scope::cta>
__device__ __forceinline__ bool mbarrier_try_wait_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  if constexpr (SCOPE == Scope::cta) {
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%1], %2;\n\t"
        "selp.b32 %0, 1, 0, done;\n\t"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } else {
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n\t"
        "selp.b32 %0, 1, 0, done;\n\t"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
  return done != 0;
}

// Waits until the phase of this parity has completed. A fresh barrier is in phase 0: parity 1 passes
// at once, which is how a ring's producer finds its slots empty.
template <Scope SCOPE = Scope::cta>
__device__ __forceinline__ void mbarrier_wait_parity(uint32_t barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity<SCOPE>(barrier, parity)) {
  }
}

}  // namespace kx
