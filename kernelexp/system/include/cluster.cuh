// Clusters: rank, addresses of other CTAs, barriers. PTX ISA 9.1, sections 10.16
// (%cluster_ctarank), 9.7.9.23 (mapa), 9.7.13.3 (barrier.cluster).
#pragma once

#include <cstdint>

namespace kx {

__device__ __forceinline__ uint32_t cluster_ctarank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The shared::cluster address at which CTA `rank` has what this CTA has at `address`.
__device__ __forceinline__ uint32_t mapa_shared_cluster(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

__device__ __forceinline__ void barrier_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace kx
