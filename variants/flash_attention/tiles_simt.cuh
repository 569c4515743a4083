// What the phases without tensor cores share: tiles from global to shared memory, dot products.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "config.cuh"

// WIDTH elements of F16, moved together.
template <uint32_t WIDTH>
struct alignas(2 * WIDTH) Vector {
  __half values[WIDTH];
};

// The CTA copies `rows` rows of HEAD_DIM elements to rows PITCH elements apart, WIDTH elements a
// thread at a time; where the pitch keeps them from being aligned, they are stored in pairs.
template <uint32_t WIDTH, uint32_t PITCH>
__device__ __forceinline__ void copy_rows(__half* destination, const __half* source,
                                          uint32_t rows) {
  constexpr uint32_t STORED = PITCH % WIDTH == 0 ? WIDTH : 2;
  for (uint32_t i = WIDTH * threadIdx.x; i < rows * Config::HEAD_DIM;
       i += WIDTH * Config::THREADS) {
    const auto loaded = *reinterpret_cast<const Vector<WIDTH>*>(source + i);
    __half* place = destination + i / Config::HEAD_DIM * PITCH + i % Config::HEAD_DIM;
#pragma unroll
    for (uint32_t j = 0; j < WIDTH; j += STORED) {
      Vector<STORED> part;
#pragma unroll
      for (uint32_t k = 0; k < STORED; ++k) {
        part.values[k] = loaded.values[j + k];
      }
      *reinterpret_cast<Vector<STORED>*>(place + j) = part;
    }
  }
}

// The dot product of a row of Q and a row of K, in shared memory.
__device__ __forceinline__ float dot(const __half* q, const __half* k) {
  float sum = 0.0f;
#pragma unroll 8
  for (uint32_t d = 0; d < Config::HEAD_DIM; d += 2) {
    const float2 a = __half22float2(*reinterpret_cast<const __half2*>(q + d));
    const float2 b = __half22float2(*reinterpret_cast<const __half2*>(k + d));
    sum = fmaf(a.y, b.y, fmaf(a.x, b.x, sum));
  }
  return sum;
}

// The largest of a warp's values, in all lanes; and their sum.
__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, mask));
  }
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, mask);
  }
  return value;
}
