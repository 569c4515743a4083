// Registers that warpgroups hand to each other: PTX ISA 9.1, section 9.7.19.5 (setmaxnreg).
#pragma once

#include <cstdint>

namespace kx {

// Every warp of a warpgroup: gives registers back until a thread has COUNT.
template <uint32_t COUNT>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(COUNT >= 24 && COUNT <= 256 && COUNT % 8 == 0, "24 to 256 in steps of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT) : "memory");
}

// Every warp of a warpgroup: waits until others have given enough back for COUNT a thread.
template <uint32_t COUNT>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(COUNT >= 24 && COUNT <= 256 && COUNT % 8 == 0, "24 to 256 in steps of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT) : "memory");
}

}  // namespace kx
