// Tensor copies from global to shared memory: PTX ISA 9.1, section 9.7.9.27.1.2.
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

}  // namespace kx
