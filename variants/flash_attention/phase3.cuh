// Phase 3: as phase 1, with vector loads, and rows of queries that belong to a warp, whose lanes
// find a row's maximum and sum together (reduce=warp) or a lane for each row (reduce=serial).
//
// Only K and V pass from warp to warp, so two barriers of the CTA for each tile of keys are enough:
// one when they are there, one when they may be overwritten. sync_policy=5 has the published
// kernel's three others, where a warp need only wait for itself; 10 has each of the five twice;
// `none` leaves out those two as well, and is wrong.
#pragma once

#include "tiles_simt.cuh"

// A barrier of the CTA that the data need.
__device__ __forceinline__ void sync_tiles() {
  if constexpr (Config::SYNC_POLICY != SyncPolicy::none_) {
    __syncthreads();
  }
  if constexpr (Config::SYNC_POLICY == SyncPolicy::s10_) {
    __syncthreads();
  }
}

// Where a warp hands over to itself, and the published kernel waits for the whole CTA.
__device__ __forceinline__ void sync_rows() {
  if constexpr (Config::SYNC_POLICY == SyncPolicy::s5_ ||
                Config::SYNC_POLICY == SyncPolicy::s10_) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  if constexpr (Config::SYNC_POLICY == SyncPolicy::s10_) {
    __syncthreads();
  }
}

struct Rows {
  float* scores;  // [ROWS][SCORES_PITCH]
  float* largest;
  float* total;
  float* factor;
};

// The rows' new maxima, and by how much what was summed before must be scaled.
__device__ __forceinline__ void find_maxima(const Rows& rows, uint32_t lane) {
  constexpr uint32_t PITCH = Config::SCORES_PITCH;
  if constexpr (Config::REDUCE == Reduce::serial_) {
    if (lane < Config::ROWS) {
      float now = rows.largest[lane];
#pragma unroll 1
      for (uint32_t j = 0; j < Config::BLOCK_N; ++j) {
        now = fmaxf(now, rows.scores[lane * PITCH + j]);
      }
      rows.factor[lane] = __expf(rows.largest[lane] - now);
      rows.largest[lane] = now;
    }
  } else {
    for (uint32_t row = 0; row < Config::ROWS; ++row) {
      float now = -INFINITY;
      for (uint32_t j = lane; j < Config::BLOCK_N; j += 32) {
        now = fmaxf(now, rows.scores[row * PITCH + j]);
      }
      now = fmaxf(warp_max(now), rows.largest[row]);
      __syncwarp();  // all lanes have read the old maximum
      if (lane == 0) {
        rows.factor[row] = __expf(rows.largest[row] - now);
        rows.largest[row] = now;
      }
    }
  }
}

// Scores become probabilities, and are added up.
__device__ __forceinline__ void find_sums(const Rows& rows, uint32_t lane) {
  constexpr uint32_t PITCH = Config::SCORES_PITCH;
  if constexpr (Config::REDUCE == Reduce::serial_) {
    if (lane < Config::ROWS) {
      float sum = 0.0f;
#pragma unroll 1
      for (uint32_t j = 0; j < Config::BLOCK_N; ++j) {
        const float probability = __expf(rows.scores[lane * PITCH + j] - rows.largest[lane]);
        rows.scores[lane * PITCH + j] = probability;
        sum += probability;
      }
      rows.total[lane] = rows.total[lane] * rows.factor[lane] + sum;
    }
  } else {
    for (uint32_t row = 0; row < Config::ROWS; ++row) {
      float sum = 0.0f;
      for (uint32_t j = lane; j < Config::BLOCK_N; j += 32) {
        const float probability = __expf(rows.scores[row * PITCH + j] - rows.largest[row]);
        rows.scores[row * PITCH + j] = probability;
        sum += probability;
      }
      sum = warp_sum(sum);
      if (lane == 0) {
        rows.total[row] = rows.total[row] * rows.factor[row] + sum;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(Config::THREADS)
    flash_attention(const __half* q, const __half* k, const __half* v, __half* out,
                    uint32_t keys, float scale) {
  constexpr uint32_t D = Config::HEAD_DIM, M = Config::BLOCK_M, N = Config::BLOCK_N;
  constexpr uint32_t WIDTH = Config::VEC_WIDTH, PITCH = Config::SCORES_PITCH;
  __shared__ __align__(16) __half q_tile[M * D];
  __shared__ __align__(16) __half k_tile[N * Config::K_PITCH];
  __shared__ __align__(16) __half v_tile[N * D];
  __shared__ float scores[M * PITCH];
  __shared__ float sums[M * D];
  __shared__ float largest[M], total[M], factor[M];
  const uint32_t lane = threadIdx.x % 32, own = threadIdx.x / 32 * Config::ROWS;
  const size_t head = size_t{blockIdx.y} * keys * D;
  const size_t first_row = size_t{blockIdx.x} * M * D;
  const Rows rows{scores + own * PITCH, largest + own, total + own, factor + own};

  copy_rows<WIDTH, D>(q_tile, q + head + first_row, M);
  for (uint32_t i = threadIdx.x; i < M * D; i += Config::THREADS) {
    sums[i] = 0.0f;
  }
  if (threadIdx.x < M) {
    largest[threadIdx.x] = -INFINITY;
    total[threadIdx.x] = 0.0f;
  }
  __syncthreads();

  for (uint32_t key = 0; key < keys; key += N) {
    copy_rows<WIDTH, Config::K_PITCH>(k_tile, k + head + size_t{key} * D, N);
    copy_rows<WIDTH, D>(v_tile, v + head + size_t{key} * D, N);
    sync_tiles();  // K and V are there
#pragma unroll 1
    for (uint32_t row = 0; row < Config::ROWS; ++row) {
      for (uint32_t column = lane; column < N; column += 32) {
        rows.scores[row * PITCH + column] =
            scale * dot(q_tile + (own + row) * D, k_tile + column * Config::K_PITCH);
      }
    }
    sync_rows();  // the scores are there
    find_maxima(rows, lane);
    sync_rows();  // the maxima are there
    find_sums(rows, lane);
    sync_rows();  // probabilities and sums are there
#pragma unroll 1
    for (uint32_t row = 0; row < Config::ROWS; ++row) {
      for (uint32_t d = lane; d < D; d += 32) {
        float sum = sums[(own + row) * D + d] * rows.factor[row];
#pragma unroll 8
        for (uint32_t j = 0; j < N; ++j) {
          sum = fmaf(rows.scores[row * PITCH + j], __half2float(v_tile[j * D + d]), sum);
        }
        sums[(own + row) * D + d] = sum;
      }
    }
    sync_tiles();  // K and V may be overwritten
  }
  __syncwarp();

#pragma unroll 1
  for (uint32_t row = 0; row < Config::ROWS; ++row) {
    for (uint32_t d = lane; d < D; d += 32) {
      const float value = sums[(own + row) * D + d] / rows.total[row];
      out[head + first_row + (own + row) * D + d] = __float2half_rn(value);
    }
  }
}
