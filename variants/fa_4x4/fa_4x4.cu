// out = softmax(q k^T * scale) v in F32, for one head: 64 rows of queries a CTA, 32 keys at a time,
// products as tiles of 4 x 4 in a thread's registers, everything else in shared memory.
//
// K is stored transposed, so that a thread reads four keys of a column next to each other. K_LAYOUT
// is about that store: a warp reads consecutive columns of a row of K from global memory, and writes
// them a row of the transposed tile apart.

#include <cstdint>

#include "export.cuh"
#include "ldst.cuh"

enum class KLayout {
  plain,     // rows of 32 words: 32 columns of a key lie in one bank
  padded,    // rows of 33 words: in 32 banks; but four keys are no longer aligned to 16 bytes
  swizzled,  // rows of 32 words, group g of four keys of column c in place of g ^ (c % 8); a warp
             // stores 8 columns of 4 keys, which are 32 banks
};

#ifndef KX_K_LAYOUT
#error "KX_K_LAYOUT is missing (axis `k_layout`, e.g. -DKX_K_LAYOUT=padded)"
#endif
#ifndef KX_THREADS
#error "KX_THREADS is missing (axis `threads`, e.g. -DKX_THREADS=512)"
#endif

struct Config {
  static constexpr KLayout K_LAYOUT = KLayout::KX_K_LAYOUT;
  static constexpr uint32_t THREADS = KX_THREADS;
  static constexpr uint32_t WARPS = THREADS / 32;
  static constexpr uint32_t BLOCK_M = 64;
  static constexpr uint32_t BLOCK_N = 32;
  static constexpr uint32_t HEAD_DIM = 64;
  static constexpr uint32_t TILE = 4;
  static constexpr uint32_t K_PITCH = BLOCK_N + (K_LAYOUT == KLayout::padded ? 1 : 0);

  // Shared memory, in words: Q | K or V | scores | output | maximum, sum and factor of each row.
  static constexpr uint32_t KV_OFFSET = BLOCK_M * HEAD_DIM;
  static constexpr uint32_t SCORES_OFFSET = KV_OFFSET + K_PITCH * HEAD_DIM;
  static constexpr uint32_t OUT_OFFSET = SCORES_OFFSET + BLOCK_M * BLOCK_N;
  static constexpr uint32_t ROWS_OFFSET = OUT_OFFSET + BLOCK_M * HEAD_DIM;
  static constexpr uint32_t SMEM_BYTES = 4 * (ROWS_OFFSET + 3 * BLOCK_M);

  static_assert(THREADS >= BLOCK_M * HEAD_DIM / (TILE * TILE),
                "a thread has at most one tile of 4 x 4 of the output");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(dynamic_smem_bytes, Config::SMEM_BYTES);
KX_EXPORT(block_m, Config::BLOCK_M);
KX_EXPORT(block_n, Config::BLOCK_N);

// Where column `column` of key `key` lies in the transposed tile.
__device__ __forceinline__ uint32_t place(uint32_t column, uint32_t key) {
  if constexpr (Config::K_LAYOUT == KLayout::swizzled) {
    key ^= column % 8 * 4;
  }
  return column * Config::K_PITCH + key;
}

__device__ __forceinline__ void store_transposed(float* kv, const float* k) {
  constexpr uint32_t D = Config::HEAD_DIM;
  for (uint32_t i = threadIdx.x; i < Config::BLOCK_N * D; i += Config::THREADS) {
    uint32_t key = i / D, column = i % D;
    if constexpr (Config::K_LAYOUT == KLayout::swizzled) {
      key = i / (4 * D) * 4 + i % 32 / 8;
      column = i / 32 % 8 * 8 + i % 8;
    }
    kv[place(column, key)] = k[key * D + column];
  }
}

// Four keys of a column. One by one where a row is padded: the compiler would read some together
// with the word of padding, which nobody has written.
__device__ __forceinline__ void load_keys(const float* kv, uint32_t column, uint32_t key,
                                          float (&b)[Config::TILE]) {
  if constexpr (Config::K_LAYOUT == KLayout::padded) {
    const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(kv));
#pragma unroll
    for (uint32_t j = 0; j < Config::TILE; ++j) {
      uint32_t word;
      kx::ld_shared<1>(&word, base + 4 * place(column, key + j));
      b[j] = __uint_as_float(word);
    }
  } else {
    const float4 four = *reinterpret_cast<const float4*>(kv + place(column, key));
    b[0] = four.x, b[1] = four.y, b[2] = four.z, b[3] = four.w;
  }
}

// A thread's tile: acc[i][j] += sum over k of a[row + i][k] * b(k)[j].
template <uint32_t STEPS, typename LoadB>
__device__ __forceinline__ void multiply(const float* a, LoadB load_b,
                                         float (&acc)[Config::TILE][Config::TILE]) {
  for (uint32_t first = 0; first < STEPS; first += 4) {
    float rows[Config::TILE][4];
#pragma unroll
    for (uint32_t i = 0; i < Config::TILE; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(a + i * STEPS + first);
      rows[i][0] = four.x, rows[i][1] = four.y, rows[i][2] = four.z, rows[i][3] = four.w;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      float b[Config::TILE];
      load_b(first + k, b);
#pragma unroll
      for (uint32_t i = 0; i < Config::TILE; ++i) {
#pragma unroll
        for (uint32_t j = 0; j < Config::TILE; ++j) {
          acc[i][j] = fmaf(rows[i][k], b[j], acc[i][j]);
        }
      }
    }
  }
}

// The softmax of a warp's rows: a lane has a column.
__device__ __forceinline__ void normalise(float* scores, float* largest, float* total,
                                          float* factor, float scale) {
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t row = threadIdx.x / 32; row < Config::BLOCK_M; row += Config::WARPS) {
    const float score = scores[row * Config::BLOCK_N + lane] * scale;
    float now = fmaxf(score, largest[row]);
#pragma unroll
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, mask));
    }
    const float probability = expf(score - now);
    float sum = probability;
#pragma unroll
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
      sum += __shfl_xor_sync(0xffffffff, sum, mask);
    }
    scores[row * Config::BLOCK_N + lane] = probability;
    if (lane == 0) {
      factor[row] = expf(largest[row] - now);
      total[row] = total[row] * factor[row] + sum;
      largest[row] = now;
    }
  }
}

extern "C" __global__ void __launch_bounds__(Config::THREADS)
    fa_4x4(const float* q, const float* k, const float* v, float* out, uint32_t keys,
           float scale) {
  constexpr uint32_t D = Config::HEAD_DIM, M = Config::BLOCK_M, N = Config::BLOCK_N;
  constexpr uint32_t TILE = Config::TILE;
  extern __shared__ __align__(16) float smem[];
  float* q_tile = smem;
  float* kv = smem + Config::KV_OFFSET;
  float* scores = smem + Config::SCORES_OFFSET;
  float* sums = smem + Config::OUT_OFFSET;
  float* largest = smem + Config::ROWS_OFFSET;
  float* total = largest + M;
  float* factor = total + M;
  const uint32_t thread = threadIdx.x;
  const size_t first = size_t{blockIdx.x} * M * D;

  for (uint32_t i = thread; i < M * D; i += Config::THREADS) {
    q_tile[i] = q[first + i];
    sums[i] = 0.0f;
  }
  if (thread < M) {
    largest[thread] = -INFINITY;
    total[thread] = 0.0f;
  }

  for (uint32_t key = 0; key < keys; key += N) {
    store_transposed(kv, k + size_t{key} * D);
    __syncthreads();  // K is there
    if (thread < M * N / (TILE * TILE)) {
      const uint32_t row = thread / (N / TILE) * TILE, column = thread % (N / TILE) * TILE;
      float acc[TILE][TILE] = {};
      multiply<D>(q_tile + row * D,
                  [&](uint32_t step, float (&b)[TILE]) { load_keys(kv, step, column, b); }, acc);
#pragma unroll
      for (uint32_t i = 0; i < TILE; ++i) {
        *reinterpret_cast<float4*>(scores + (row + i) * N + column) =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
      }
    }
    __syncthreads();  // the scores are there, K has been read
    for (uint32_t i = thread; i < N * D; i += Config::THREADS) {
      kv[i] = v[size_t{key} * D + i];
    }
    normalise(scores, largest, total, factor, scale);
    __syncthreads();  // V and the probabilities are there
    if (thread < M * D / (TILE * TILE)) {
      const uint32_t row = thread / (D / TILE) * TILE, column = thread % (D / TILE) * TILE;
      float acc[TILE][TILE] = {};
      const auto load_values = [&](uint32_t step, float (&b)[TILE]) {
        const float4 four = *reinterpret_cast<const float4*>(kv + step * D + column);
        b[0] = four.x, b[1] = four.y, b[2] = four.z, b[3] = four.w;
      };
      multiply<N>(scores + row * N, load_values, acc);
#pragma unroll
      for (uint32_t i = 0; i < TILE; ++i) {
        float* place = sums + (row + i) * D + column;
#pragma unroll
        for (uint32_t j = 0; j < TILE; ++j) {
          place[j] = fmaf(place[j], factor[row + i], acc[i][j]);
        }
      }
    }
    __syncthreads();  // V and the probabilities have been read
  }

  for (uint32_t i = thread; i < M * D; i += Config::THREADS) {
    out[first + i] = sums[i] / total[i / D];
  }
}
