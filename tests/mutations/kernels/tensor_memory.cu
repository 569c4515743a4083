// Small kernels for Blackwell that multiply into tensor memory.

#include <cuda.h>

#include <cstdint>

#include "descriptor.cuh"
#include "tcgen05.cuh"
#include "tma.cuh"

namespace {

__device__ __forceinline__ uint32_t address_of(const void *shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
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

__device__ __forceinline__ void store_row(float *out, const uint32_t *r) {
  for (int i = 0; i < 32; ++i) out[i] = __uint_as_float(r[i]);
}

}  // namespace

constexpr uint32_t INSTRUCTION = kx::e4m3_f32_instruction(128, 32);

extern "C" {

// 128 x 32 = (128 x 128) (32 x 128)^T in E4M3: one tile, four MMAs.
__global__ void __launch_bounds__(128)
    one_tile(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             float *out) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ uint64_t full, done;
  __shared__ uint32_t tensor;
  const int t = threadIdx.x;
  const uint32_t left = address_of(memory), right = left + 16384;
  if (t == 0) {
    init(address_of(&full), 1);
    init(address_of(&done), 1);
    fence_init();
  }
  if (t / 32 == 1) {
    kx::tcgen05_alloc<1, 32>(address_of(&tensor));
    kx::tcgen05_relinquish_alloc_permit<1>();
  }
  __syncthreads();
  const uint32_t d = tensor;
  if (t == 0) {
    expect(address_of(&full), 20480);
    kx::cp_async_bulk_tensor_2d<1>(left, &a, 0, 0, address_of(&full));
    kx::cp_async_bulk_tensor_2d<1>(right, &b, 0, 0, address_of(&full));
    wait(address_of(&full), 0);
    const uint64_t da = kx::k_major_128b_descriptor(left), db = kx::k_major_128b_descriptor(right);
    for (int k = 0; k < 4; ++k) {
      kx::tcgen05_mma_f8f6f4<1>(d, kx::advance_k(da, 32 * k), kx::advance_k(db, 32 * k),
                                INSTRUCTION, k > 0);
    }
    kx::tcgen05_commit<1>(address_of(&done), 0);
  }
  __syncwarp();
  wait(address_of(&done), 0);
  kx::tcgen05_fence_after_thread_sync();
  uint32_t r[32];
  kx::tcgen05_ld_32x32b_x32(r, d + (t / 32 << 21));
  kx::tcgen05_wait_ld<32>(r);
  store_row(out + t * 32, r);
  __syncthreads();
  if (t / 32 == 1) kx::tcgen05_dealloc<1, 32>(d);
}

// Five such tiles with two accumulators: warp 4 copies, warp 5 multiplies, warps 0 to 3 store.
__global__ void __launch_bounds__(192)
    five_tiles(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                float *out) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ uint64_t full, free, done[2], drained[2];
  __shared__ uint32_t tensor;
  constexpr int TILES = 5;
  const int t = threadIdx.x, warp = t / 32;
  const uint32_t left = address_of(memory), right = left + 16384;
  if (t == 0) {
    init(address_of(&full), 1);
    init(address_of(&free), 1);
    for (int i = 0; i < 2; ++i) {
      init(address_of(&done[i]), 1);
      init(address_of(&drained[i]), 128);
    }
    fence_init();
  }
  if (warp == 5) {
    kx::tcgen05_alloc<1, 64>(address_of(&tensor));
    kx::tcgen05_relinquish_alloc_permit<1>();
  }
  __syncthreads();
  const uint32_t d = tensor;
  if (warp == 4) {
    if (t == 128) {
#pragma unroll 1
      for (int i = 0; i < TILES; ++i) {
        wait(address_of(&free), i % 2 ^ 1);
        expect(address_of(&full), 20480);
        kx::cp_async_bulk_tensor_2d<1>(left, &a, 0, 128 * i, address_of(&full));
        kx::cp_async_bulk_tensor_2d<1>(right, &b, 0, 0, address_of(&full));
      }
    }
  } else if (warp == 5) {
    if (t == 160) {
#pragma unroll 1
      for (int i = 0; i < TILES; ++i) {
        wait(address_of(&drained[i % 2]), i / 2 % 2 ^ 1);
        kx::tcgen05_fence_after_thread_sync();
        wait(address_of(&full), i % 2);
        const uint64_t da = kx::k_major_128b_descriptor(left);
        const uint64_t db = kx::k_major_128b_descriptor(right);
        for (int k = 0; k < 4; ++k) {
          kx::tcgen05_mma_f8f6f4<1>(d + i % 2 * 32, kx::advance_k(da, 32 * k),
                                    kx::advance_k(db, 32 * k), INSTRUCTION, k > 0);
        }
        kx::tcgen05_commit<1>(address_of(&free), 0);
        kx::tcgen05_commit<1>(address_of(&done[i % 2]), 0);
      }
    }
  } else {
#pragma unroll 1
    for (int i = 0; i < TILES; ++i) {
      wait(address_of(&done[i % 2]), i / 2 % 2);
      kx::tcgen05_fence_after_thread_sync();
      uint32_t r[32];
      kx::tcgen05_ld_32x32b_x32(r, d + i % 2 * 32 + (warp << 21));
      kx::tcgen05_wait_ld<32>(r);
      kx::tcgen05_fence_before_thread_sync();
      arrive(address_of(&drained[i % 2]));
      store_row(out + (i * 128 + t) * 32, r);
    }
  }
  __syncwarp();
  __syncthreads();
  if (warp == 5) kx::tcgen05_dealloc<1, 64>(d);
}

// Rows go to tensor memory and come back, from the other half of a warp's columns.
__global__ void stored_rows(const unsigned *in, unsigned *out) {
  __shared__ uint32_t tensor;
  const int t = threadIdx.x;
  if (t < 32) kx::tcgen05_alloc<1, 32>(address_of(&tensor));
  __syncthreads();
  const uint32_t mine = tensor + (t / 32 << 21);
  unsigned a = in[t], b = in[128 + t], c;
  asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1, %2};" ::"r"(mine), "r"(a), "r"(b)
               : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];\n\t"
               "tcgen05.wait::ld.sync.aligned;"
               : "=r"(c), "=r"(a)
               : "r"(mine)
               : "memory");
  out[t] = a + 2 * c;
  __syncthreads();
  if (t < 32) {
    kx::tcgen05_relinquish_alloc_permit<1>();
    kx::tcgen05_dealloc<1, 32>(tensor);
  }
}
}
