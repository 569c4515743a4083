// The choice of one lane of a warp: PTX ISA 9.1, section 9.7.13.14 (elect.sync).
#pragma once

#include <cstdint>

namespace kx {

// True in one lane of the warp, which all its lanes execute together. Behind it ptxas knows that a
// single thread is active, and needs no loop over the lanes around an instruction with uniform
// operands.
__device__ __forceinline__ bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred elected;\n\t"
      "elect.sync _|elected, 0xffffffff;\n\t"
      "selp.b32 %0, 1, 0, elected;\n\t"
      "}"
      : "=r"(elected)
      :
      : "memory");
  return elected != 0;
}

}  // namespace kx
