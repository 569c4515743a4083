// Phase 1: tiles of queries and keys, their elements strided over the CTA's threads; a thread finds
// a row's maximum and sum alone, while the others wait. Five barriers for each tile of keys.
#pragma once

#include "tiles_simt.cuh"

extern "C" __global__ void __launch_bounds__(Config::THREADS)
    flash_attention(const __half* q, const __half* k, const __half* v, __half* out,
                    uint32_t keys, float scale) {
  constexpr uint32_t D = Config::HEAD_DIM, M = Config::BLOCK_M, N = Config::BLOCK_N;
  constexpr uint32_t PITCH = Config::SCORES_PITCH;
  __shared__ __align__(16) __half q_tile[M * D];
  __shared__ __align__(16) __half k_tile[N * Config::K_PITCH];
  __shared__ __align__(16) __half v_tile[N * D];
  __shared__ float scores[M * PITCH];
  __shared__ float sums[M * D];
  __shared__ float largest[M], total[M], factor[M];
  const size_t head = size_t{blockIdx.y} * keys * D;
  const size_t first_row = size_t{blockIdx.x} * M * D;

  copy_rows<1, D>(q_tile, q + head + first_row, M);
  for (uint32_t i = threadIdx.x; i < M * D; i += Config::THREADS) {
    sums[i] = 0.0f;
  }
  if (threadIdx.x < M) {
    largest[threadIdx.x] = -INFINITY;
    total[threadIdx.x] = 0.0f;
  }
  __syncthreads();

  for (uint32_t key = 0; key < keys; key += N) {
    copy_rows<1, Config::K_PITCH>(k_tile, k + head + size_t{key} * D, N);
    copy_rows<1, D>(v_tile, v + head + size_t{key} * D, N);
    __syncthreads();  // K and V are there
    for (uint32_t i = threadIdx.x; i < M * N; i += Config::THREADS) {
      const uint32_t row = i / N, column = i % N;
      scores[row * PITCH + column] =
          scale * dot(q_tile + row * D, k_tile + column * Config::K_PITCH);
    }
    __syncthreads();  // the scores are there
    if (threadIdx.x < M) {
      const uint32_t row = threadIdx.x;
      float now = largest[row];
#pragma unroll 1
      for (uint32_t j = 0; j < N; ++j) {
        now = fmaxf(now, scores[row * PITCH + j]);
      }
      factor[row] = __expf(largest[row] - now);
      largest[row] = now;
    }
    __syncthreads();  // the maxima are there
    if (threadIdx.x < M) {
      const uint32_t row = threadIdx.x;
      float sum = 0.0f;
#pragma unroll 1
      for (uint32_t j = 0; j < N; ++j) {
        const float probability = __expf(scores[row * PITCH + j] - largest[row]);
        scores[row * PITCH + j] = probability;
        sum += probability;
      }
      total[row] = total[row] * factor[row] + sum;
    }
    __syncthreads();  // probabilities and sums are there
    for (uint32_t i = threadIdx.x; i < M * D; i += Config::THREADS) {
      const uint32_t row = i / D, d = i % D;
      float sum = sums[i] * factor[row];
#pragma unroll 8
      for (uint32_t j = 0; j < N; ++j) {
        sum = fmaf(scores[row * PITCH + j], __half2float(v_tile[j * D + d]), sum);
      }
      sums[i] = sum;
    }
    __syncthreads();  // K, V and scores may be overwritten
  }

  for (uint32_t i = threadIdx.x; i < M * D; i += Config::THREADS) {
    out[head + first_row + i] = __float2half_rn(sums[i] / total[i / D]);
  }
}
