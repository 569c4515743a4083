// mbarrier objects: PTX ISA 9.1, section 9.7.13.15.
//
// Addresses are 32-bit: shared::cta for a CTA's own barriers, shared::cluster (from mapa) where a
// wrapper says so.
//
// Order of memory: what these barriers hand over is read and written by TMA and the tensor core,
// and the ISA's patterns for those (9.7.16.6.4) arrive and wait .relaxed.cluster beside a
// tcgen05.fence. Only the wait for copied bytes acquires, at .cta scope. An arrival
// .release.cluster is a MEMBAR.ALL.GPU, a wait .acquire.cluster a CCTL.IVALL, which empties L1
// (ptxas 13.0.88); these forms are one SYNCS.
#pragma once

#include <cstdint>

namespace kx {

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes the inits before it visible to the cluster: section 9.7.13.4 (membar, fence).
__device__ __forceinline__ void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives on a barrier of any CTA of the cluster (shared::cluster address): 9.7.13.15.13.
__device__ __forceinline__ void mbarrier_arrive_relaxed_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}

// Expects `bytes` more of asynchronous copies, then arrives (shared::cluster
// address): 9.7.13.15.13.
__device__ __forceinline__ void mbarrier_arrive_expect_tx_relaxed_cluster(uint32_t barrier,
                                                                          uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

// Whether the phase of this parity has completed; may suspend the thread for a while: 9.7.13.15.16.
// A fresh barrier is in phase 0: parity 1 passes at once, which is how a ring's producer finds its
// slots empty.
__device__ __forceinline__ bool mbarrier_try_wait_parity_relaxed_cluster(uint32_t barrier,
                                                                         uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, done;\n\t"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// The same, and the thread sees what was copied on this barrier.
__device__ __forceinline__ bool mbarrier_try_wait_parity_acquire_cta(uint32_t barrier,
                                                                     uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, done;\n\t"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

}  // namespace kx
