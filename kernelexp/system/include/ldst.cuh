// Vector loads and stores: PTX ISA 9.1, sections 9.7.9.8 (ld), 9.7.9.9 (ld.global.nc), 9.7.9.11
// (st).
//
// WORDS is the number of 32-bit registers a lane; addresses are aligned to 4 * WORDS bytes.
#pragma once

#include <cstdint>

namespace kx {

// Data that nobody writes while the kernel runs, through the non-coherent path.
template <uint32_t WORDS>
__device__ __forceinline__ void ld_global_nc(uint32_t* r, const void* address) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4,
                "global memory is accessed in 4, 8, 16 bytes a lane");
  if constexpr (WORDS == 1) {
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(r[0]) : "l"(address));
  } else if constexpr (WORDS == 2) {
    asm volatile("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "l"(address));
  } else {
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "l"(address));
  }
}

template <uint32_t WORDS>
__device__ __forceinline__ void ld_shared(uint32_t* r, uint32_t address) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4,
                "shared memory is accessed in 4, 8, 16 bytes a lane");
  if constexpr (WORDS == 1) {
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r[0]) : "r"(address) : "memory");
  } else if constexpr (WORDS == 2) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  }
}

template <uint32_t WORDS>
__device__ __forceinline__ void st_shared(uint32_t address, const uint32_t* r) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4,
                "shared memory is accessed in 4, 8, 16 bytes a lane");
  if constexpr (WORDS == 1) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(r[0]) : "memory");
  } else if constexpr (WORDS == 2) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(r[0]), "r"(r[1])
                 : "memory");
  } else {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  }
}

// 32 bytes a lane are one instruction from sm_100 on.
template <uint32_t WORDS>
__device__ __forceinline__ void st_global(void* address, const uint32_t* r) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4 || WORDS == 8,
                "global memory is accessed in 4, 8, 16, 32 bytes a lane");
  if constexpr (WORDS == 1) {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(address), "r"(r[0]) : "memory");
  } else if constexpr (WORDS == 2) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(address), "r"(r[0]), "r"(r[1])
                 : "memory");
  } else if constexpr (WORDS == 4) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  } else {
    asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]),
                 "r"(r[7])
                 : "memory");
  }
}

}  // namespace kx
