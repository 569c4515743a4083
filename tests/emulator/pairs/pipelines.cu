// Copies that run beside the threads: cp.async, mbarriers, bulk and tensor copies, the tensor core.

#include "faults.cuh"
#include "hopper.cuh"
#include <cuda.h>
#include <cuda_pipeline_primitives.h>

namespace {

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void store(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

__device__ void begin(void *bar, unsigned count) {
  if (threadIdx.x == 0) {
    init(bar, count);
    fence_init();
  }
  __syncthreads();
}

}  // namespace

// cp.async.

KERNEL(copy_that_nobody_waits_for) {
  __shared__ alignas(16) unsigned s[256];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(s + 4 * t, in + 4 * t, 16);
  __pipeline_commit();
  RIGHT(__pipeline_wait_prior(0));
  __syncthreads();
  out[t] = s[255 - t];
}

KERNEL(copy_waited_for_by_its_thread_only) {
  __shared__ alignas(16) unsigned s[256];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(s + 4 * t, in + 4 * t, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  RIGHT(__syncthreads());
  out[t] = s[255 - t];
}

KERNEL(last_stage_not_waited_for) {
  __shared__ alignas(16) unsigned s[2][64];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], in + t, 4);
  __pipeline_commit();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (i < 3) {
      __pipeline_memcpy_async(&s[(i + 1) % 2][t], in + 64 * (i + 1) + t, 4);
      __pipeline_commit();
    }
    RIGHT(if (i < 3) __pipeline_wait_prior(1); else __pipeline_wait_prior(0));
    FAULT(__pipeline_wait_prior(1));
    __syncthreads();
    sum = sum * 3 + s[i % 2][63 - t];
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL(stage_refilled_before_all_have_read_it) {
  __shared__ alignas(16) unsigned s[2][64];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], in + t, 4);
  __pipeline_commit();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    __pipeline_wait_prior(0);
    RIGHT(__syncthreads());
    FAULT(if (i % 2 == 0) __syncthreads());
    if (i < 3) __pipeline_memcpy_async(&s[(i + 1) % 2][t], in + 64 * (i + 1) + t, 4);
    __pipeline_commit();
    sum = sum * 3 + s[i % 2][63 - t];
  }
  out[t] = sum;
}

KERNEL(copies_waited_for_without_a_commit) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(s + t, in + t, 4);
  RIGHT(__pipeline_commit());
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  out[t] = s[63 - t];
}

KERNEL(copies_arrive_at_a_barrier) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 64);
  __pipeline_memcpy_async(s + t, in + t, 4);
  RIGHT(asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&full)) : "memory"));
  FAULT(asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(shared_address(&full)) : "memory"));
  wait(&full, 0);
  out[t] = s[63 - t];
}

KERNEL(store_to_what_a_copy_fills) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(s + t, in + t, 4);
  __pipeline_commit();
  RIGHT(__pipeline_wait_prior(0));
  if (t % 8 == 0) s[t] = 7;
  FAULT(__pipeline_wait_prior(0));
  __syncthreads();
  out[t] = s[63 - t];
}

// mbarriers.

KERNEL(parity_that_never_flips) {
  __shared__ alignas(128) unsigned s[2][64];
  __shared__ unsigned long long full[2];
  const unsigned t = threadIdx.x;
  begin(full, 1);
  begin(full + 1, 1);
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (t == 0) {
      expect(full + i % 2, 256);
      fetch(s[i % 2], in + 64 * i, 256, full + i % 2);
    }
    RIGHT(wait(full + i % 2, i / 2 % 2));
    FAULT(wait(full + i % 2, 0));
    sum = sum * 3 + s[i % 2][63 - t];
    __syncthreads();
  }
  FAULT(wait(full, 1));
  FAULT(wait(full + 1, 1));
  out[t] = sum;
}

KERNEL(leaders_arrive_where_all_are_counted) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  begin(&bar, RIGHT(2) FAULT(64));
  s[t] = in[t];
  __syncwarp();
  if (lane() == 0) arrive(&bar);
  wait(&bar, 0);
  out[t] = s[63 - t];
}

KERNEL(barrier_used_before_its_init) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  RIGHT(__syncthreads());
  s[t] = in[t];
  arrive(&bar);
  wait(&bar, 0);
  out[t] = s[63 - t];
}

KERNEL(memory_of_a_barrier_used_for_data) {
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  begin(&bar, 64);
  arrive(&bar);
  wait(&bar, 0);
  RIGHT(__syncthreads());
  if (t == 0) {
    RIGHT(asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(&bar)) : "memory"));
    *reinterpret_cast<unsigned *>(&bar) = in[0];
  }
  __syncthreads();
  out[t] = *reinterpret_cast<unsigned *>(&bar);
}

KERNEL(stage_released_before_its_last_read) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full, empty;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  begin(&empty, 32);
  if (t == 32)
    for (unsigned i = 0; i < 4; ++i) {
      if (i) wait(&empty, (i - 1) % 2);
      expect(&full, 256);
      fetch(s, in + 64 * i, 256, &full);
    }
  if (warp() == 0) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; ++i) {
      wait(&full, i % 2);
      sum = sum * 3 + s[t];
      FAULT(arrive(&empty));
      sum += s[63 - t];
      RIGHT(arrive(&empty));
    }
    out[t] = sum;
  }
}

KERNEL(producer_that_never_waits) {
  __shared__ alignas(128) unsigned s[2][64];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 2; ++i) {
    begin(full + i, 1);
    begin(empty + i, 32);
  }
  if (t == 32)
    for (unsigned i = 0; i < 6; ++i) {
      RIGHT(wait(empty + i % 2, (i / 2 + 1) % 2));
      FAULT(if (i > 1) wait(full + i % 2, i / 2 % 2 ^ 1));
      expect(full + i % 2, 256);
      fetch(s[i % 2], in + 64 * i, 256, full + i % 2);
    }
  if (warp() == 0) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 6; ++i) {
      wait(full + i % 2, i / 2 % 2);
      sum = sum * 3 + s[i % 2][t] + s[i % 2][63 - t];
      arrive(empty + i % 2);
    }
    out[t] = sum;
  }
}

KERNEL(one_thread_waits_for_all) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  if (t == 0) {
    expect(&full, 256);
    fetch(s, in, 256, &full);
    wait(&full, 0);
  }
  RIGHT(__syncthreads());
  out[t] = s[63 - t];
}

// Bulk and tensor copies.

KERNEL(fewer_bytes_expected_than_copied) {
  __shared__ alignas(128) unsigned s[2][32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  if (t == 0) {
    RIGHT(expect(&full, 256));
    FAULT(expect(&full, 128));
    fetch(s[0], in, 128, &full);
    fetch(s[1], in + 32, 128, &full);
  }
  wait(&full, 0);
  out[t] = s[1 - t / 32][t % 32];
}

KERNEL(bulk_copy_to_an_odd_address) {
  __shared__ alignas(128) unsigned s[66];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  if (t == 0) {
    expect(&full, 128);
    fetch(s FAULT(+2), in, 128, &full);
  }
  wait(&full, 0);
  if (t < 32) out[t] = s[t FAULT(+2)];
}

KERNEL(block_ends_before_its_store_has_read) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t] + 1;
  fence_async();
  __syncthreads();
  if (t == 0) {
    store(out, s, 256);
    RIGHT(wait_until_read());
  }
}

KERNEL(store_of_a_tile_not_yet_written) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t] + 1;
  fence_async();
  RIGHT(__syncthreads());
  if (t == 0) {
    store(out, s, 256);
    wait_until_read();
  }
}

KERNEL(loaded_then_written_back) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  if (t == 0) {
    expect(&full, 256);
    fetch(s, in, 256, &full);
  }
  wait(&full, 0);
  s[t] = s[t] * 3;
  RIGHT(fence_async());
  __syncthreads();
  if (t == 0) {
    store(out, s, 256);
    wait_until_read();
  }
}

KERNEL(reduced_by_two_blocks) {
  __shared__ alignas(128) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  fence_async();
  __syncthreads();
  RIGHT(if (t == 0)) FAULT(if (t == 0 && blockIdx.x == 0)) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(out),
                 "r"(shared_address(s))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  FAULT(if (blockIdx.x == 1) out[t] += s[t]);
}

#define TENSOR_KERNEL(name)                                                                          \
  extern "C" __global__ void name(unsigned *out, const unsigned *in, unsigned *scratch,              \
                                  const __grid_constant__ CUtensorMap map)

TENSOR_KERNEL(box_over_the_edge) {
  __shared__ alignas(128) unsigned s[8][32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  if (t == 0) {
    RIGHT(expect(&full, 8 * 32 * 4));
    FAULT(expect(&full, 4 * 32 * 4));
    fetch_box(s, &map, 0, 8, &full);
  }
  wait(&full, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[i / 32][i % 32];
}

TENSOR_KERNEL(box_to_an_address_of_64_bytes) {
  __shared__ alignas(128) unsigned s[9][32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, 1);
  if (t == 0) {
    expect(&full, 1024);
    fetch_box(&s[0][FAULT(16) RIGHT(0)], &map, 0, 0, &full);
  }
  wait(&full, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[i / 32][i % 32];
}

TENSOR_KERNEL(box_read_before_it_came) {
  __shared__ alignas(128) unsigned s[2][8][32];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  begin(&full, RIGHT(1) FAULT(2));
  if (t == 0) {
    RIGHT(expect(&full, 2048));
    FAULT(expect(&full, 1024));
    fetch_box(s[0], &map, 0, 0, &full);
    FAULT(arrive(&full));
    fetch_box(s[1], &map, 0, 4, &full);
  }
  wait(&full, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[1][i / 32][i % 32];
}

// The tensor core.

KERNEL(operand_without_a_proxy_fence) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x;
  if (t < 64) b[t] = 0x3c003c00;
  RIGHT(fence_async());
  __syncthreads();
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 8ull << 32;
  const unsigned a = 0x3c003c00;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, p, 1, 1, 0; }"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "r"(a), "l"(descriptor)
               : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)::"memory");
  out[t] = static_cast<unsigned>(d0 + d1 + d2 + d3);
}

KERNEL(operand_overwritten_during_the_product) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x;
  if (t < 64) b[t] = 0x3c003c00;
  fence_async();
  __syncthreads();
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 8ull << 32;
  const unsigned a = 0x3c003c00;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, p, 1, 1, 0; }"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "r"(a), "l"(descriptor)
               : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  FAULT(if (t < 64) b[t] = t);
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)::"memory");
  RIGHT(__syncthreads());
  RIGHT(if (t < 64) b[t] = t);
  __syncthreads();
  out[t] = static_cast<unsigned>(d0 + d1 + d2 + d3) + b[t % 64];
}
