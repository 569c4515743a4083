// out = softmax(q k^T * scale) v for each head on Hopper, F16 in and out, F32 accumulation.
//
// One to three warpgroups have 64 rows of queries each and multiply with wgmma; a warp loads K and V
// ahead of them by TMA. Probabilities stay in registers, as operand A.
//
//                  ── full_k[stage], full_v[stage] ─▶
//   load warp                                          warpgroups (each reads every stage)
//                  ◀─ free_k[stage], free_v[stage] ──
//
//   barrier         arrivals per phase             who arrives
//   q_full          1, and Q_BYTES                 the load warp; TMA (bytes)
//   q_free          4 * WARPGROUPS                 a lane of each warp that has stored its output
//   full_k, full_v  1, and TILE_BYTES              the load warp; TMA (bytes)
//   free_k, free_v  4 * WARPGROUPS                 a lane of each warp that has read the tile
//   named 1 to 3    256 threads                    the warpgroup whose turn it is, and the one before
//
// A CTA has one block of queries, or (ctas=persistent) one after another: then the next block's Q and
// first tiles are loaded while this one's output is stored.
//
// Tiles of keys come last to first: the last one may be incomplete, and is masked before the loop.
// With overlap, the MMAs of this tile's scores and of the last one's values are issued together, and
// the latter run beside this tile's softmax.
#include "barrier.cuh"
#include "barrier_arrive.cuh"
#include "config.cuh"
#include "elect.cuh"
#include "matrix.cuh"
#include "mbarrier.cuh"
#include "pipeline.cuh"
#include "registers.cuh"
#include "softmax.cuh"
#include "tma.cuh"
#include "tma_3d.cuh"
#include "wgmma.cuh"
#include "wgmma_f16.cuh"

using Ring = kx::Pipeline<Config::STAGES>;
using RowSoftmax = Softmax<Config::POLYNOMIALS>;
using QRing = kx::Pipeline<Config::Q_STAGES>;

// A block of queries: its first row in its head.
struct Block {
  uint32_t row;
  uint32_t head;
};

// What a CTA works on, and where it has what: shared memory addresses.
struct Cta {
  uint32_t smem;
  uint32_t keys;
  uint32_t tiles;  // of keys
  uint32_t head_blocks;
  uint32_t blocks;  // of all heads

  __device__ __forceinline__ Block block(uint32_t index) const {
    return Block{index % head_blocks * Config::BLOCK_M, index / head_blocks};
  }
  // The next block of this CTA, or one past the last.
  __device__ __forceinline__ uint32_t after(uint32_t index) const {
    return Config::IS_PERSISTENT ? index + gridDim.x : blocks;
  }
  __device__ __forceinline__ uint32_t q(uint32_t stage, uint32_t warpgroup) const {
    return smem + stage * Config::Q_BYTES + warpgroup * Config::BOXES * Config::Q_BOX_BYTES;
  }
  __device__ __forceinline__ uint32_t k(uint32_t stage) const {
    return smem + Config::K_OFFSET + stage * Config::TILE_BYTES;
  }
  __device__ __forceinline__ uint32_t v(uint32_t stage) const {
    return smem + Config::V_OFFSET + stage * Config::TILE_BYTES;
  }
  __device__ __forceinline__ uint32_t barrier(uint32_t index) const {
    return smem + Config::BARRIERS_OFFSET + 8 * index;
  }
  __device__ __forceinline__ uint32_t full_k(uint32_t stage) const { return barrier(stage); }
  __device__ __forceinline__ uint32_t full_v(uint32_t stage) const {
    return barrier(Config::STAGES + stage);
  }
  __device__ __forceinline__ uint32_t free_k(uint32_t stage) const {
    return barrier(2 * Config::STAGES + stage);
  }
  __device__ __forceinline__ uint32_t free_v(uint32_t stage) const {
    return barrier(3 * Config::STAGES + stage);
  }
  __device__ __forceinline__ uint32_t q_full(uint32_t stage) const {
    return barrier(4 * Config::STAGES + stage);
  }
  __device__ __forceinline__ uint32_t q_free(uint32_t stage) const {
    return barrier(4 * Config::STAGES + Config::Q_STAGES + stage);
  }
};

// A tile of K or V, once its place is free.
__device__ __forceinline__ void load_tile(const Cta& cta, const CUtensorMap* map, uint32_t head,
                                          uint32_t tile, uint32_t destination, uint32_t full, uint32_t free,
                                          uint32_t phase) {
  kx::wait_for_phase(free, phase ^ 1);
  kx::mbarrier_arrive_expect_tx_relaxed_cluster(full, Config::TILE_BYTES);
#pragma unroll
  for (uint32_t box = 0; box < Config::BOXES; ++box) {
    kx::cp_async_bulk_tensor_3d(destination + box * Config::TILE_BOX_BYTES, map,
                                box * Config::BOX_COLUMNS, tile * Config::BLOCK_N, head, full);
  }
}

// The queries of a block, once their place is free.
__device__ __forceinline__ void load_queries(const Cta& cta, const CUtensorMap* map, Block block,
                                             const QRing& ring) {
  const uint32_t full = cta.q_full(ring.stage);
  kx::wait_for_copies(cta.q_free(ring.stage), ring.phase ^ 1);
  kx::mbarrier_arrive_expect_tx_relaxed_cluster(full, Config::Q_BYTES);
  for (uint32_t warpgroup = 0; warpgroup < Config::WARPGROUPS; ++warpgroup) {
    for (uint32_t box = 0; box < Config::BOXES; ++box) {
      kx::cp_async_bulk_tensor_3d(cta.q(ring.stage, warpgroup) + box * Config::Q_BOX_BYTES, map,
                                  box * Config::BOX_COLUMNS,
                                  block.row + warpgroup * Config::MMA_M, block.head, full);
    }
  }
}

// One thread.
__device__ __forceinline__ void load_role(const Cta& cta, const CUtensorMap* q,
                                          const CUtensorMap* k, const CUtensorMap* v) {
  QRing q_ring;
  Ring ring;
  for (uint32_t index = blockIdx.x; index < cta.blocks; index = cta.after(index)) {
    const Block block = cta.block(index);
    load_queries(cta, q, block, q_ring);
    q_ring.advance();
    for (uint32_t tile = cta.tiles; tile-- > 0;) {
      const uint32_t stage = ring.stage, phase = ring.phase;
      load_tile(cta, k, block.head, tile, cta.k(stage), cta.full_k(stage), cta.free_k(stage),
                phase);
      load_tile(cta, v, block.head, tile, cta.v(stage), cta.full_v(stage), cta.free_v(stage),
                phase);
      ring.advance();
    }
  }
}

// The order in which the warpgroups issue their MMAs: each begins when the one before has issued.
struct Turns {
  uint32_t warpgroup;

  __device__ __forceinline__ explicit Turns(uint32_t own) : warpgroup(own) {
    if (Config::TAKES_TURNS && warpgroup == Config::WARPGROUPS - 1) {
      kx::bar_arrive(1, 256);  // the first warpgroup begins
    }
  }
  __device__ __forceinline__ void begin() const {
    if constexpr (Config::TAKES_TURNS) {
      kx::bar_sync(1 + warpgroup, 256);
    }
  }
  // Nobody waits for the turn that the last warpgroup would pass on at the end.
  __device__ __forceinline__ void pass(bool is_last) const {
    if constexpr (Config::TAKES_TURNS) {
      if (!is_last || warpgroup < Config::WARPGROUPS - 1) {
        kx::bar_arrive(1 + (warpgroup + 1) % Config::WARPGROUPS, 256);
      }
    }
  }
};

// A warp has written to the place of its queries, which the next copy will overwrite: its stores
// come first. Where a warp has only read, a relaxed arrival is enough.
__device__ __forceinline__ void release_written(uint32_t free, QRing& ring) {
  if (threadIdx.x % 32 == 0) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(free) : "memory");
  }
  ring.advance();
}

// A warp has read what lies at the ring's stage.
template <typename AnyRing>
__device__ __forceinline__ void release(uint32_t free, AnyRing& ring) {
  if (threadIdx.x % 32 == 0) {
    kx::mbarrier_arrive_relaxed_cluster(free);
  }
  ring.advance();
}

// Issues s = Q * K^T, a group.
__device__ __forceinline__ void multiply_scores(uint32_t q, uint32_t k,
                                                float (&s)[Config::SCORES]) {
  kx::wgmma_fence();
#pragma unroll
  for (uint32_t box = 0; box < Config::BOXES; ++box) {
    const uint64_t a = kx::wgmma_k_major_128b_descriptor(q + box * Config::Q_BOX_BYTES);
    const uint64_t b = kx::wgmma_k_major_128b_descriptor(k + box * Config::TILE_BOX_BYTES);
#pragma unroll
    for (uint32_t step = 0; step < Config::BOX_COLUMNS / Config::MMA_K; ++step) {
      constexpr uint32_t STEP = 2 * Config::MMA_K >> 4;  // of a descriptor's address
      kx::wgmma_mma_async_f16(s, a + step * STEP, b + step * STEP, box > 0 || step > 0);
    }
  }
  kx::wgmma_commit_group();
}

// Issues o += P * V, a group.
__device__ __forceinline__ void multiply_values(const uint32_t (&p)[Config::PROBABILITIES],
                                                uint32_t v, float (&o)[Config::OUTPUTS]) {
  const uint64_t b = kx::wgmma_mn_major_128b_descriptor(v, Config::TILE_BOX_BYTES);
  kx::wgmma_fence(o);
#pragma unroll
  for (uint32_t step = 0; step < Config::BLOCK_N / Config::MMA_K; ++step) {
    constexpr uint32_t STEP = Config::MMA_K * Config::ROW_BYTES >> 4;
    kx::wgmma_mma_async_f16(o, p + 4 * step, b + step * STEP, true);
  }
  kx::wgmma_commit_group();
}

// Keys past the last one.
__device__ __forceinline__ void mask(float (&s)[Config::SCORES], uint32_t keys) {
#pragma unroll
  for (uint32_t i = 0; i < Config::SCORES; ++i) {
    if (i / 4 * 8 + 2 * (threadIdx.x % 4) + i % 2 >= keys) {
      s[i] = -INFINITY;
    }
  }
}

// The first tile's scores, masked, as probabilities.
__device__ __forceinline__ void begin(const Cta& cta, uint32_t q, Ring& k_ring, RowSoftmax& softmax,
                                      uint32_t (&p)[Config::PROBABILITIES]) {
  float s[Config::SCORES], factor[2];
  kx::wait_for_copies(cta.full_k(k_ring.stage), k_ring.phase);
  multiply_scores(q, cta.k(k_ring.stage), s);
  kx::wgmma_wait_group<0>(s);
  release(cta.free_k(k_ring.stage), k_ring);
  const uint32_t keys = cta.keys - (cta.tiles - 1) * Config::BLOCK_N;
  if (keys < Config::BLOCK_N) {
    mask(s, keys);
  }
  softmax.update(s, factor);
  pack(s, p);
}

// Keeps what comes next behind the softmax. ptxas (13.0.88) moves the wait for the values' MMAs up to
// where the scores are there, before the exponentials, but not past a branch. This one depends on
// all of them, and is never taken: sums of exponentials are not negative.
__device__ __forceinline__ void pin(const RowSoftmax& softmax) {
  if (softmax.total[0] + softmax.total[1] < 0.0f) {
    __nanosleep(1);
  }
}

// o += P * V of the tile before, and the probabilities of the next tile.
__device__ __forceinline__ void advance(const Cta& cta, uint32_t q, bool is_last, Turns turns,
                                        Ring& k_ring, Ring& v_ring, RowSoftmax& softmax,
                                        uint32_t (&p)[Config::PROBABILITIES],
                                        float (&o)[Config::OUTPUTS]) {
  float s[Config::SCORES], factor[2];
  if constexpr (Config::OVERLAP != Overlap::none_) {
    kx::wait_for_copies(cta.full_k(k_ring.stage), k_ring.phase);
    turns.begin();
    multiply_scores(q, cta.k(k_ring.stage), s);
    kx::wait_for_copies(cta.full_v(v_ring.stage), v_ring.phase);
    multiply_values(p, cta.v(v_ring.stage), o);
    turns.pass(is_last);
    kx::wgmma_wait_group<1>(s);
    release(cta.free_k(k_ring.stage), k_ring);
    softmax.update(s, factor);
    if constexpr (Config::OVERLAP == Overlap::pinned_) {
      pin(softmax);
    }
    kx::wgmma_wait_group<0>(o);
    release(cta.free_v(v_ring.stage), v_ring);
  } else {
    kx::wait_for_copies(cta.full_v(v_ring.stage), v_ring.phase);
    multiply_values(p, cta.v(v_ring.stage), o);
    kx::wgmma_wait_group<0>(o);
    release(cta.free_v(v_ring.stage), v_ring);
    kx::wait_for_copies(cta.full_k(k_ring.stage), k_ring.phase);
    turns.begin();
    multiply_scores(q, cta.k(k_ring.stage), s);
    turns.pass(is_last);
    kx::wgmma_wait_group<0>(s);
    release(cta.free_k(k_ring.stage), k_ring);
    softmax.update(s, factor);
  }
  scale_rows(o, factor);
  pack(s, p);
}

// A warp's 16 rows of the output, by way of its rows of Q's place.
__device__ __forceinline__ void store(const Cta& cta, uint32_t head, uint32_t row, uint32_t buffer,
                                      const CUtensorMap* out_map,
                                      const float (&o)[Config::OUTPUTS]) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t packed[Config::OUTPUTS / 2];
  pack(o, packed);
#pragma unroll
  for (uint32_t column = 0; column < Config::HEAD_DIM; column += 16) {
    const uint32_t chunk = column % Config::BOX_COLUMNS / 8 + lane / 16;
    const uint32_t box = buffer + column / Config::BOX_COLUMNS * Config::Q_BOX_BYTES;
    kx::stmatrix_x4(box + lane % 16 * Config::ROW_BYTES + 16 * (chunk ^ lane % 8),
                    packed + column / 4);
  }
  kx::fence_proxy_async_shared_cta();
  __syncwarp();
  if (lane == 0 && row < cta.keys) {
#pragma unroll
    for (uint32_t box = 0; box < Config::BOXES; ++box) {
      kx::cp_async_bulk_tensor_3d_global_shared(out_map, box * Config::BOX_COLUMNS, row, head,
                                                buffer + box * Config::Q_BOX_BYTES);
    }
    kx::cp_async_bulk_commit_group();
    kx::cp_async_bulk_wait_group_read<0>();
  }
}

// A warpgroup and its rows of a block.
__device__ __forceinline__ void attend(const Cta& cta, uint32_t q, bool is_last, Turns turns,
                                       Ring& k_ring, Ring& v_ring, float scale_log2,
                                       float (&o)[Config::OUTPUTS]) {
  RowSoftmax softmax(scale_log2);
  uint32_t p[Config::PROBABILITIES];
  float factor[2];
#pragma unroll
  for (uint32_t i = 0; i < Config::OUTPUTS; ++i) {
    o[i] = 0.0f;
  }
  begin(cta, q, k_ring, softmax, p);
#pragma unroll 1
  for (uint32_t tile = cta.tiles - 1; tile > 0; --tile) {
    advance(cta, q, is_last && tile == 1, turns, k_ring, v_ring, softmax, p, o);
  }
  kx::wait_for_copies(cta.full_v(v_ring.stage), v_ring.phase);
  multiply_values(p, cta.v(v_ring.stage), o);
  kx::wgmma_wait_group<0>(o);
  release(cta.free_v(v_ring.stage), v_ring);
  softmax.finish(factor);
  scale_rows(o, factor);
}

// A warpgroup and all of the CTA's blocks.
__device__ __forceinline__ void attend_role(const Cta& cta, uint32_t warpgroup, uint32_t warp,
                                            const CUtensorMap* out_map, float scale_log2) {
  const Turns turns(warpgroup);
  Ring k_ring, v_ring;
  QRing q_ring;
#pragma unroll 1
  for (uint32_t index = blockIdx.x; index < cta.blocks; index = cta.after(index)) {
    const Block block = cta.block(index);
    const uint32_t q = cta.q(q_ring.stage, warpgroup);
    const uint32_t first_row = warp * Config::OUT_BOX_ROWS;
    float o[Config::OUTPUTS];
    kx::wait_for_copies(cta.q_full(q_ring.stage), q_ring.phase);
    attend(cta, q, cta.after(index) >= cta.blocks, turns, k_ring, v_ring, scale_log2, o);
    store(cta, block.head, block.row + warpgroup * Config::MMA_M + first_row,
          q + first_row * Config::ROW_BYTES, out_map, o);
    release_written(cta.q_free(q_ring.stage), q_ring);
  }
}

// One thread of each CTA.
__device__ __forceinline__ void init_barriers(const Cta& cta) {
  for (uint32_t stage = 0; stage < Config::Q_STAGES; ++stage) {
    kx::mbarrier_init(cta.q_full(stage), 1);
    kx::mbarrier_init(cta.q_free(stage), 4 * Config::WARPGROUPS);
  }
  for (uint32_t stage = 0; stage < Config::STAGES; ++stage) {
    kx::mbarrier_init(cta.full_k(stage), 1);
    kx::mbarrier_init(cta.full_v(stage), 1);
    kx::mbarrier_init(cta.free_k(stage), 4 * Config::WARPGROUPS);
    kx::mbarrier_init(cta.free_v(stage), 4 * Config::WARPGROUPS);
  }
  kx::fence_mbarrier_init_release_cluster();
}

extern "C" __global__ void __launch_bounds__(Config::THREADS, Config::CTAS_PER_SM)
    flash_attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                    const __grid_constant__ CUtensorMap v,
                    const __grid_constant__ CUtensorMap out_map, uint32_t keys,
                    uint32_t heads, float scale_log2) {
  extern __shared__ __align__(1024) uint8_t smem[];
  // From lane 0, so that ptxas knows it to be the same in all lanes.
  const uint32_t warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  Cta cta;
  cta.smem = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  cta.keys = keys;
  cta.tiles = (keys + Config::BLOCK_N - 1) / Config::BLOCK_N;
  cta.head_blocks = (keys + Config::BLOCK_M - 1) / Config::BLOCK_M;
  cta.blocks = heads * cta.head_blocks;

  if (threadIdx.x == 0) {
    kx::prefetch_tensormap(&q);
    kx::prefetch_tensormap(&k);
    kx::prefetch_tensormap(&v);
    init_barriers(cta);
  }
  __syncthreads();

  if (warp / 4 == Config::WARPGROUPS) {
    kx::setmaxnreg_dec<Config::LOAD_REGISTERS>();
    if (warp % 4 == 0) {
      if (kx::elect_sync()) {
        load_role(cta, &q, &k, &v);
      }
      __syncwarp();
    }
  } else {
    kx::setmaxnreg_inc<Config::MMA_REGISTERS>();
    attend_role(cta, warp / 4, warp % 4, &out_map, scale_log2);
  }
}
