// What sm_100a adds.

#include "driver.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

KERNEL(single_precision_in_pairs) {
  const unsigned t = threadIdx.x;
  const float2 a = make_float2(in[t] % 100, t), b = make_float2(2, in[t] % 7);
  const float2 c = __ffma2_rn(a, b, __fadd2_rn(a, __fmul2_rn(b, b)));
  out[t] = static_cast<unsigned>(c.x) + 10000 * static_cast<unsigned>(c.y);
}

KERNEL(loads_and_stores_of_32_bytes) {
  const unsigned t = threadIdx.x;
  unsigned w[8];
  asm volatile("ld.global.L2::evict_last.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]), "=r"(w[4]), "=r"(w[5]), "=r"(w[6]), "=r"(w[7])
               : "l"(in + 8 * t));
  asm volatile("st.global.v8.b32 [%0], {%8, %7, %6, %5, %4, %3, %2, %1};" ::"l"(out + 8 * t), "r"(w[0]),
               "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[5]), "r"(w[6]), "r"(w[7])
               : "memory");
}

KERNEL(four_bit_floats_there_and_back) {
  // Every value of E2M1, twice over.
  const unsigned t = threadIdx.x;
  const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float x = values[t % 8], y = -values[in[t] % 8];
  const __nv_fp4x2_storage_t pair = __nv_cvt_float2_to_fp4x2(make_float2(x, y), __NV_E2M1, cudaRoundNearest);
  const __half2_raw back = __nv_cvt_fp4x2_to_halfraw2(pair, __NV_E2M1);
  const __half2 h = back;
  out[t] = pair + (static_cast<unsigned>(2 * __low2float(h)) << 8) + (static_cast<unsigned>(-2 * __high2float(h)) << 16);
}

KERNEL(six_bit_floats_there_and_back) {
  const unsigned t = threadIdx.x;
  const float x = (t % 8) * 0.125f, y = 2.0f + (in[t] % 4) * 0.5f;
  const __nv_fp6x2_storage_t a = __nv_cvt_float2_to_fp6x2(make_float2(x, y), __NV_E2M3, cudaRoundNearest);
  const __nv_fp6x2_storage_t b = __nv_cvt_float2_to_fp6x2(make_float2(4, y), __NV_E3M2, cudaRoundNearest);
  const __half2 h = __half2(__nv_cvt_fp6x2_to_halfraw2(a, __NV_E2M3)), i = __half2(__nv_cvt_fp6x2_to_halfraw2(b, __NV_E3M2));
  out[t] = static_cast<unsigned>(8 * __low2float(h)) + 100 * static_cast<unsigned>(2 * __high2float(h)) +
           10000 * static_cast<unsigned>(__low2float(i)) + 100000 * static_cast<unsigned>(2 * __high2float(i));
}

KERNEL(shared_memory_cleared_in_bulk) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t == 0)
    asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"l"(static_cast<unsigned long long>(shared_address(s))), "n"(128) : "memory");
  __syncthreads();
  out[t] = s[63 - t];
}

KERNEL(maximum_of_floats_of_a_warp) {
  const unsigned t = threadIdx.x;
  const float x = in[t] % 1000 - 500.0f;
  float most, least;
  asm volatile("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(most) : "f"(x));
  asm volatile("redux.sync.min.abs.f32 %0, %1, 0xffffffff;" : "=f"(least) : "f"(x));
  out[t] = static_cast<unsigned>(most + 500) + 1000 * static_cast<unsigned>(least);
}

KERNEL(minimum_of_three) {
  const unsigned t = threadIdx.x;
  const float a = in[t] % 100, b = in[64 + t] % 100, c = t;
  float least, most;
  asm("min.f32 %0, %1, %2, %3;" : "=f"(least) : "f"(a), "f"(b), "f"(c));
  asm("max.f32 %0, %1, %2, %3;" : "=f"(most) : "f"(a), "f"(b), "f"(c));
  out[t] = static_cast<unsigned>(least) + 1000 * static_cast<unsigned>(most);
}

// Column 0 to 15 of tensor memory, written and read by all four warps.
KERNEL(tensor_memory_as_scratch) {
  __shared__ unsigned base;
  const unsigned t = threadIdx.x;
  if (warp() == 0) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&base)) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  __syncthreads();
  const unsigned at = base + (warp() * 32 << 16);
  asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1, %2};" ::"r"(at), "r"(in[t]), "r"(t) : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  unsigned x, y;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at) : "memory");
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  out[t] = x + y;
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp() == 0) {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(base));
  }
}

KERNEL(tensor_memory_in_shapes_of_64_bits) {
  __shared__ unsigned base;
  const unsigned t = threadIdx.x;
  if (warp() == 0)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&base)) : "memory");
  __syncthreads();
  const unsigned at = base + (warp() * 32 << 16);
  asm volatile("tcgen05.st.sync.aligned.16x64b.x1.b32 [%0], {%1};" ::"r"(at), "r"(in[t]) : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  unsigned x;
  asm volatile("tcgen05.ld.sync.aligned.16x64b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(at) : "memory");
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  out[t] = x;
  __syncthreads();
  if (warp() == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(base));
}

KERNEL(scale_factors_there_and_back) {
  // The powers of two below x and above 1 / x, and E2M1 from a pair of halves.
  const unsigned t = threadIdx.x;
  const float x = 1 + in[t] % 100, y = 1.0f / x;
  const unsigned below = __nv_cvt_float2_to_e8m0x2(make_float2(x, y), __NV_SATFINITE, cudaRoundZero);
  const unsigned above = __nv_cvt_float2_to_e8m0x2(make_float2(x, y), __NV_SATFINITE, cudaRoundPosInf);
  const __nv_bfloat162 back = __nv_bfloat162(__nv_cvt_e8m0x2_to_bf162raw(below));
  const __half2_raw halves = __half2(__float2half(in[t] % 7), __float2half(-1.0f));
  const unsigned narrow = __nv_cvt_halfraw2_to_fp4x2(halves, __NV_E2M1, cudaRoundNearest);
  out[t] = (below & 255) | above >> 8 << 8 | narrow << 16 |
           static_cast<unsigned>(__low2float(back)) << 24;
}

KERNEL(work_of_clusters_that_are_not_launched) {
  // A running CTA asks for the next tile, while it works, until no launch is left to cancel.
  __shared__ alignas(16) uint4 answer;
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, to = __cvta_generic_to_shared(&answer), b = __cvta_generic_to_shared(&bar);
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(b) : "memory");
  __syncthreads();
  unsigned tile = blockIdx.x, phase = 0, more = 1;
  while (more) {
    if (t == 0)
      asm volatile(
          "mbarrier.arrive.expect_tx.shared.b64 _, [%1], 16;"
          "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(to),
          "r"(b)
          : "memory");
    atomicAdd(&out[64 * tile + t], in[t] + tile + 1);
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(b), "r"(phase) : "memory");
    asm volatile(
        "{ .reg .pred p; .reg .b128 a; ld.shared.b128 a, [%2];"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, a; selp.u32 %0, 1, 0, p;"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, a; }"
        : "=r"(more), "+r"(tile) : "r"(to) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    phase ^= 1;
  }
}
