// Tensor copies between global and shared memory: PTX ISA 9.1, section 9.7.9.27.1.2.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace kx {

// A hint only: PTX ISA section 9.7.9.15.
__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Copies the box at (column, row) into this CTA's shared memory; its bytes are completed on
// `barrier`. With CTA_GROUP 2 the barrier may be that of the pair's other CTA (shared::cluster
// address).
template <int CTA_GROUP>
__device__ __forceinline__ void cp_async_bulk_tensor_2d(uint32_t destination,
                                                        const CUtensorMap* map, uint32_t column,
                                                        uint32_t row, uint32_t barrier) {
  static_assert(CTA_GROUP == 1 || CTA_GROUP == 2, "a copy signals its own CTA or its CTA pair");
  if constexpr (CTA_GROUP == 1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
        "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".cta_group::2 [%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
        "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
  }
}

// The same to every CTA of the cluster whose bit is set in `ctas`: to the place that `destination`
// has in this one, and completed on the barrier at the place of `barrier`.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(uint32_t destination,
                                                                  const CUtensorMap* map,
                                                                  uint32_t column, uint32_t row,
                                                                  uint32_t barrier, uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(ctas)
      : "memory");
}

// Section 9.7.9.27.1.4: brings the box to L2.
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_2d(const CUtensorMap* map,
                                                                 uint32_t column, uint32_t row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map),
               "r"(column), "r"(row)
               : "memory");
}

// Copies shared memory to the box at (column, row), in this thread's open bulk group.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_global_shared(const CUtensorMap* map,
                                                                      uint32_t column, uint32_t row,
                                                                      uint32_t source) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::
                   "l"(map),
               "r"(column), "r"(row), "r"(source)
               : "memory");
}

// The same; what it writes is the first to leave L2 (the policy that createpolicy.fractional gives
// for L2::evict_first and all of the data).
__device__ __forceinline__ void cp_async_bulk_tensor_2d_global_shared_cache_hint(
    const CUtensorMap* map, uint32_t column, uint32_t row, uint32_t source) {
  constexpr uint64_t EVICT_FIRST = 0x12f0000000000000;
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint "
      "[%0, {%1, %2}], [%3], %4;" ::"l"(map),
      "r"(column), "r"(row), "r"(source), "l"(EVICT_FIRST)
      : "memory");
}

// Section 9.7.9.25.3.1: closes this thread's bulk group.
__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Section 9.7.9.25.3.2: until all but PENDING of this thread's bulk groups have read their sources.
template <int PENDING>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Until all but PENDING of them have written, too.
template <int PENDING>
__device__ __forceinline__ void cp_async_bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Section 9.7.13.4: what this thread has written to shared memory comes before later bulk copies
// that read it.
__device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace kx
