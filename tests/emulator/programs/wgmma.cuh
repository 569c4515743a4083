#pragma once
#include <cuda_fp16.h>
#include "ptx.cuh"
// Operands without swizzle, K-major: core matrices of 8 rows x 16 bytes, each 128 contiguous bytes.
__device__ inline uint64_t desc(const void *p, uint32_t k_bytes, uint32_t mn_bytes) {
  return uint64_t((s32(p) & 0x3FFFF) >> 4) | uint64_t(k_bytes >> 4) << 16 | uint64_t(mn_bytes >> 4) << 32;
}
// element (row, k) of a [rows x 16] operand
__device__ inline int at(int row, int k, int rows) { return (k / 8 * (rows / 8) + row / 8) * 64 + row % 8 * 8 + k % 8; }
__device__ inline void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ inline void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
__device__ inline void wg_mma(float (&d)[4], uint64_t a, uint64_t b, int add) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;"
               " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(add));
}
