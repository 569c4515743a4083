// Tensor copies of three dimensions: PTX ISA 9.1, section 9.7.9.27.1.2. What lies outside of the
// tensor is read as zeros and not written, so that a box never reaches into the next index of the
// outermost dimension.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace kx {

// Copies the box at (x, y, z) to this CTA's shared memory; its bytes are completed on `barrier`.
__device__ __forceinline__ void cp_async_bulk_tensor_3d(uint32_t destination,
                                                        const CUtensorMap* map, uint32_t x,
                                                        uint32_t y, uint32_t z, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(destination),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

// Copies shared memory to the box at (x, y, z), in this thread's open bulk group.
__device__ __forceinline__ void cp_async_bulk_tensor_3d_global_shared(const CUtensorMap* map,
                                                                      uint32_t x, uint32_t y,
                                                                      uint32_t z,
                                                                      uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::
          "l"(map),
      "r"(x), "r"(y), "r"(z), "r"(source)
      : "memory");
}

}  // namespace kx
