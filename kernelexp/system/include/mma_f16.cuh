// A warp's multiplication of F16 matrices, and its operands from shared memory: PTX ISA 9.1,
// sections 9.7.14.5.14 (mma) and 9.7.14.5.15 (ldmatrix).
#pragma once

#include <cstdint>

namespace kx {

// D += A * B, 16 x 8 x 16, F32 accumulators. With g = lane / 4 and q = lane % 4: a[0] is row g, K
// 2 q and 2 q + 1; a[1] row g + 8, the same K; a[2] and a[3] the same rows, 8 of K further on.
// b[0] is K 2 q and 2 q + 1 of column g, b[1] 8 of K further on. d[0] and d[1] are row g, columns
// 2 q and 2 q + 1; d[2] and d[3] row g + 8.
__device__ __forceinline__ void mma_sync_m16n8k16_f16(float* d, const uint32_t* a,
                                                      const uint32_t* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four matrices of 8 x 8: lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i; r[i] of
// lane l is row l / 4 of it, columns 2 (l % 4) and the next.
__device__ __forceinline__ void ldmatrix_x4(uint32_t* r, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

}  // namespace kx
