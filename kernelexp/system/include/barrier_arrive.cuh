// The half of a named barrier that does not wait: PTX ISA 9.1, section 9.7.13.1.
#pragma once

#include <cstdint>

namespace kx {

// Counts the warp in at barrier `id`, of `threads` threads in all, and goes on.
__device__ __forceinline__ void bar_arrive(uint32_t id, uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace kx
