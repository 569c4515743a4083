// Named barriers of a CTA: PTX ISA 9.1, section 9.7.13.1.
#pragma once

#include <cstdint>

namespace kx {

// Waits until `threads` threads (whole warps) of the CTA have come to barrier ID; 0 is
// __syncthreads.
template <uint32_t ID>
__device__ __forceinline__ void bar_sync(uint32_t threads) {
  static_assert(ID >= 1 && ID <= 15, "a CTA has barriers 0 to 15, and 0 is that of __syncthreads");
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "r"(threads) : "memory");
}

// The same for a barrier that is known when the kernel runs.
__device__ __forceinline__ void bar_sync(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace kx
