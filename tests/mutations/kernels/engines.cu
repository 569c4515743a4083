// Small kernels for Hopper that copy and multiply asynchronously, and wait by mbarriers.

#include <cuda.h>

#include <cstdint>

#include "cp_async.cuh"
#include "elect.cuh"
#include "matrix.cuh"
#include "registers.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "wgmma_f16.cuh"

namespace {

__device__ __forceinline__ uint32_t address_of(const void *shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ uint32_t peer(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

__device__ __forceinline__ void init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void arrive_in_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}

__device__ __forceinline__ void expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "AGAIN:\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n\t"
      "@!done bra AGAIN;\n\t"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void wait_in_cluster(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "AGAIN:\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t"
      "@!done bra AGAIN;\n\t"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;"
               ::: "memory");
}

}  // namespace

extern "C" {

// Copies run two tiles ahead of their use; each thread uses what its neighbour has copied.
__global__ void copies_ahead(const uint4 *in, uint4 *out, int tiles) {
  __shared__ __align__(16) uint4 stage[3][64];
  const int t = threadIdx.x;
  for (int i = 0; i < 2; ++i) {
    kx::cp_async_cg(address_of(&stage[i][t]), &in[i * 64 + t]);
    kx::cp_async_commit_group();
  }
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      kx::cp_async_wait_group<1>();
    } else {
      kx::cp_async_wait_group<0>();
    }
    __syncthreads();
    if (i + 2 < tiles) {
      kx::cp_async_cg(address_of(&stage[(i + 2) % 3][t]), &in[(i + 2) * 64 + t]);
      kx::cp_async_commit_group();
    }
    uint4 value = stage[i % 3][t ^ 33];
    value.x += i;
    out[i * 64 + t] = value;
  }
}

// The same copies, which arrive at an mbarrier.
__global__ void copies_arrive(const uint4 *in, uint4 *out) {
  __shared__ __align__(16) uint4 stage[64];
  __shared__ uint64_t landed;
  const int t = threadIdx.x;
  if (t == 0) init(address_of(&landed), 64);
  __syncthreads();
  kx::cp_async_cg(address_of(&stage[t]), &in[t]);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address_of(&landed))
               : "memory");
  wait(address_of(&landed), 0);
  out[t] = stage[t ^ 33];
}

// Warp 0 fills a ring of two stages by stores, warp 1 reads them.
__global__ void ring_of_stores(const unsigned *in, unsigned *out, int tiles) {
  __shared__ unsigned stage[2][32];
  __shared__ uint64_t full[2], free[2];
  const int t = threadIdx.x, lane = t % 32;
  if (t == 0) {
    for (int i = 0; i < 2; ++i) {
      init(address_of(&full[i]), 32);
      init(address_of(&free[i]), 32);
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    const int slot = i % 2, phase = i / 2 % 2;
    if (t < 32) {
      wait(address_of(&free[slot]), phase ^ 1);
      stage[slot][lane] = in[i * 32 + lane];
      arrive(address_of(&full[slot]));
    } else {
      wait(address_of(&full[slot]), phase);
      out[i * 32 + lane] = 5 * stage[slot][lane ^ 7];
      arrive(address_of(&free[slot]));
    }
  }
}

// TMA fills a ring of two stages of 8 x 32 words, two warps use them, TMA stores the results.
__global__ void ring_of_tma(const __grid_constant__ CUtensorMap from,
                            const __grid_constant__ CUtensorMap to, int tiles) {
  __shared__ __align__(128) unsigned stage[2][256];
  __shared__ __align__(128) unsigned result[256];
  __shared__ uint64_t full[2], free[2];
  const int t = threadIdx.x;
  if (t == 0) {
    for (int i = 0; i < 2; ++i) {
      init(address_of(&full[i]), 1);
      init(address_of(&free[i]), 2);
    }
    fence_init();
  }
  __syncthreads();
  if (t >= 64) {
    if (t == 64) {
#pragma unroll 1
      for (int i = 0; i < tiles; ++i) {
        const int slot = i % 2, phase = i / 2 % 2;
        wait(address_of(&free[slot]), phase ^ 1);
        expect(address_of(&full[slot]), 1024);
        kx::cp_async_bulk_tensor_2d<1>(address_of(stage[slot]), &from, 0, 8 * i,
                                       address_of(&full[slot]));
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    const int slot = i % 2, phase = i / 2 % 2;
    wait(address_of(&full[slot]), phase);
    unsigned value[4];
    for (int j = 0; j < 4; ++j) value[j] = stage[slot][(j * 64 + t) ^ 33];
    __syncwarp();
    if (t % 32 == 0) arrive(address_of(&free[slot]));
    if (t == 0) kx::cp_async_bulk_wait_group_read<0>();
    asm volatile("bar.sync 1, 64;" ::: "memory");
    for (int j = 0; j < 4; ++j) result[j * 64 + t] = value[j] + i;
    kx::fence_proxy_async_shared_cta();
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (t == 0) {
      kx::cp_async_bulk_tensor_2d_global_shared(&to, 0, 8 * i, address_of(result));
      kx::cp_async_bulk_commit_group();
    }
  }
  if (t == 0) kx::cp_async_bulk_wait_group<0>();
}

// A linear copy in, and one out that adds.
__global__ void linear_copies(const unsigned *in, unsigned *out) {
  __shared__ __align__(16) unsigned s[64];
  __shared__ uint64_t landed;
  const int t = threadIdx.x;
  if (t == 0) {
    init(address_of(&landed), 1);
    fence_init();
  }
  __syncthreads();
  if (t == 0) {
    expect(address_of(&landed), 256);
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
        ::"r"(address_of(s)),
        "l"(in), "r"(address_of(&landed))
        : "memory");
  }
  wait(address_of(&landed), 0);
  const unsigned value = s[t ^ 33];
  __syncthreads();
  s[t] = value + t;
  kx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(out),
                 "r"(address_of(s))
                 : "memory");
    kx::cp_async_bulk_commit_group();
    kx::cp_async_bulk_wait_group<0>();
  }
}

// Both CTAs of a cluster get each tile by one multicast; a slot is free when both have read it.
__global__ void __cluster_dims__(2)
    multicast(const __grid_constant__ CUtensorMap from, unsigned *out, int tiles) {
  __shared__ __align__(128) unsigned stage[2][256];
  __shared__ uint64_t full[2], free[2];
  const int t = threadIdx.x;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) {
    for (int i = 0; i < 2; ++i) {
      init(address_of(&full[i]), 1);
      init(address_of(&free[i]), 2);
    }
    fence_init();
  }
  cluster_sync();
  if (t == 32) {
#pragma unroll 1
    for (int i = 0; i < tiles; ++i) {
      const int slot = i % 2, phase = i / 2 % 2;
      if (rank == 0) wait_in_cluster(address_of(&free[slot]), phase ^ 1);
      expect(address_of(&full[slot]), 1024);
      if (rank == 0) {
        kx::cp_async_bulk_tensor_2d_multicast(address_of(stage[slot]), &from, 0, 8 * i,
                                              address_of(&full[slot]), 3);
      }
      if (rank == 1) wait(address_of(&full[slot]), phase);
    }
  } else if (t < 32) {
#pragma unroll 1
    for (int i = 0; i < tiles; ++i) {
      const int slot = i % 2, phase = i / 2 % 2;
      wait_in_cluster(address_of(&full[slot]), phase);
      for (int j = 0; j < 8; ++j) {
        out[((i * 2 + rank) * 8 + j) * 32 + t] = stage[slot][j * 32 + (t ^ 9)] + rank;
      }
      __syncwarp();
      if (t == 0) arrive_in_cluster(peer(address_of(&free[slot]), 0));
    }
  }
  __syncwarp();
  cluster_sync();
}

// Each CTA of a cluster writes into the other, and says so at the other's mbarrier.
__global__ void __cluster_dims__(2) remote_stores(const unsigned *in, unsigned *out) {
  __shared__ unsigned from_threads[32], from_engine[32];
  __shared__ uint64_t stored, landed;
  const int t = threadIdx.x;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) {
    init(address_of(&stored), 32);
    init(address_of(&landed), 1);
    fence_init();
    expect(address_of(&landed), 128);
  }
  __syncwarp();
  cluster_sync();
  const uint32_t to = peer(address_of(&from_threads[t]), rank ^ 1);
  const unsigned value = in[rank * 32 + t];
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
  arrive_in_cluster(peer(address_of(&stored), rank ^ 1));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                   peer(address_of(&from_engine[t]), rank ^ 1)),
               "r"(value + 1), "r"(peer(address_of(&landed), rank ^ 1))
               : "memory");
  wait_in_cluster(address_of(&stored), 0);
  wait_in_cluster(address_of(&landed), 0);
  out[rank * 32 + t] = from_threads[31 - t] * 3 + from_engine[t ^ 1];
  cluster_sync();
}

// 64 x 64 = (64 x 64) (64 x 64)^T in F16, four steps of K; operands by TMA, twice.
__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             float *out, int tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ uint64_t full;
  const int t = threadIdx.x;
  const uint32_t left = address_of(memory), right = left + 8192;
  if (t == 0) {
    init(address_of(&full), 1);
    fence_init();
  }
  __syncthreads();
  float d[32];
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    if (t == 0) {
      expect(address_of(&full), 16384);
      kx::cp_async_bulk_tensor_2d<1>(left, &a, 64 * i, 0, address_of(&full));
      kx::cp_async_bulk_tensor_2d<1>(right, &b, 64 * i, 0, address_of(&full));
    }
    wait(address_of(&full), i % 2);
    const uint64_t da = kx::wgmma_k_major_128b_descriptor(left);
    const uint64_t db = kx::wgmma_k_major_128b_descriptor(right);
    kx::wgmma_fence(d);
    for (int k = 0; k < 4; ++k) {
      kx::wgmma_mma_async_f16(d, da + 2 * k, db + 2 * k, i > 0 || k > 0);
    }
    kx::wgmma_commit_group();
    kx::wgmma_wait_group<0>(d);
    __syncthreads();
  }
  const int row = t / 32 * 16 + t % 32 / 4, column = 2 * (t % 4);
  for (int j = 0; j < 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      out[(row + 8 * h) * 64 + 8 * j + column] = d[4 * j + 2 * h];
      out[(row + 8 * h) * 64 + 8 * j + column + 1] = d[4 * j + 2 * h + 1];
    }
  }
}

// Both operands written by threads; the result goes out through stmatrix and TMA.
__global__ void __launch_bounds__(128) staged_multiply(const uint4 *a, const uint4 *b,
                                                       const __grid_constant__ CUtensorMap out) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const int t = threadIdx.x;
  const uint32_t left = address_of(memory), right = left + 8192, staging = right + 8192;
  uint4 *operands = reinterpret_cast<uint4 *>(memory);
  for (int i = t; i < 512; i += 128) {
    const int row = i / 8, chunk = i % 8 ^ row % 8;
    operands[row * 8 + chunk] = a[i];
    operands[512 + row * 8 + chunk] = b[i];
  }
  kx::fence_proxy_async_shared_cta();
  __syncthreads();
  float d[32];
  kx::wgmma_fence(d);
  for (int k = 0; k < 4; ++k) {
    kx::wgmma_mma_async_f16(d, kx::wgmma_k_major_128b_descriptor(left) + 2 * k,
                            kx::wgmma_k_major_128b_descriptor(right) + 2 * k, k > 0);
  }
  kx::wgmma_commit_group();
  kx::wgmma_wait_group<0>(d);
  const int warp = t / 32, lane = t % 32;
  for (int j = 0; j < 4; ++j) {
    uint32_t packed[4];
    for (int k = 0; k < 4; ++k) {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed[k]) : "f"(d[8 * j + 2 * k + 1]),
          "f"(d[8 * j + 2 * k]));
    }
    const int row = warp * 16 + lane % 16, column = 16 * j + lane / 16 * 8;
    kx::stmatrix_x4(staging + row * 128 + column * 2, packed);
  }
  kx::fence_proxy_async_shared_cta();
  __syncwarp();
  if (lane == 0) {
    kx::cp_async_bulk_tensor_2d_global_shared(&out, 0, warp * 16, staging + warp * 2048);
    kx::cp_async_bulk_commit_group();
    kx::cp_async_bulk_wait_group<0>();
  }
}

// One warpgroup gives registers away to the two others.
__global__ void __launch_bounds__(384, 1) register_pool(const unsigned *in, unsigned *out) {
  __shared__ unsigned s[128];
  __shared__ uint64_t ready;
  const int t = threadIdx.x;
  if (t == 0) init(address_of(&ready), 128);
  __syncthreads();
  if (t < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    s[t] = in[t];
    arrive(address_of(&ready));
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    wait(address_of(&ready), 0);
    out[t - 128] = s[t % 128 ^ 1] + 1;
  }
}
}
