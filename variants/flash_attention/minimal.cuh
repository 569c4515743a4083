// Phase minimal: each thread has a row of queries, its softmax and its output, in registers. Three
// barriers in the source: after Q, after K and V, and before the next K and V.
#pragma once

#include "tiles_simt.cuh"

extern "C" __global__ void __launch_bounds__(Config::THREADS)
    flash_attention(const __half* q, const __half* k, const __half* v, __half* out,
                    uint32_t keys, float scale) {
  constexpr uint32_t D = Config::HEAD_DIM;
  __shared__ __align__(16) __half q_tile[Config::BLOCK_M * D];
  __shared__ __align__(16) __half k_tile[Config::BLOCK_N * Config::K_PITCH];
  __shared__ __align__(16) __half v_tile[Config::BLOCK_N * D];
  const size_t head = size_t{blockIdx.y} * keys * D;
  const size_t first_row = size_t{blockIdx.x} * Config::BLOCK_M * D;

  copy_rows<1, D>(q_tile, q + head + first_row, Config::BLOCK_M);
  __syncthreads();
  float query[D], sums[D];
#pragma unroll
  for (uint32_t d = 0; d < D; ++d) {
    query[d] = __half2float(q_tile[threadIdx.x * D + d]) * scale;
    sums[d] = 0.0f;
  }
  float largest = -INFINITY, total = 0.0f;

  for (uint32_t key = 0; key < keys; key += Config::BLOCK_N) {
    copy_rows<1, Config::K_PITCH>(k_tile, k + head + size_t{key} * D, Config::BLOCK_N);
    copy_rows<1, D>(v_tile, v + head + size_t{key} * D, Config::BLOCK_N);
    __syncthreads();
#pragma unroll 1
    for (uint32_t j = 0; j < Config::BLOCK_N; ++j) {
      float score = 0.0f;
#pragma unroll
      for (uint32_t d = 0; d < D; ++d) {
        score = fmaf(query[d], __half2float(k_tile[j * Config::K_PITCH + d]), score);
      }
      const float now = fmaxf(largest, score);
      const float factor = __expf(largest - now), probability = __expf(score - now);
      largest = now;
      total = total * factor + probability;
#pragma unroll
      for (uint32_t d = 0; d < D; ++d) {
        sums[d] = fmaf(probability, __half2float(v_tile[j * D + d]), sums[d] * factor);
      }
    }
    __syncthreads();
  }

  __half* row = out + head + first_row + threadIdx.x * D;
#pragma unroll
  for (uint32_t d = 0; d < D; ++d) {
    row[d] = __float2half_rn(sums[d] / total);
  }
}
