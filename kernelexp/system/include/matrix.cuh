// Matrices of 8 x 8 16-bit elements between a warp's registers and shared memory: PTX ISA 9.1,
// sections 9.7.14.5.15 (ldmatrix) and 9.7.14.5.16 (stmatrix).
//
// Four matrices: lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i, 16 bytes each;
// r[i] of lane l is row l / 4 of it, columns 2 (l % 4) and the next; transposed, rows 2 (l % 4) and
// the next of column l / 4.
#pragma once

#include <cstdint>

namespace kx {

__device__ __forceinline__ void stmatrix_x4(uint32_t address, const uint32_t* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

__device__ __forceinline__ void stmatrix_x4_trans(uint32_t address, const uint32_t* r) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t* r, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

}  // namespace kx
