// sm_100a: tensor memory and tcgen05, as epilogues and persistent loops use them.

#include "faults.cuh"
#include "hopper.cuh"

namespace {

constexpr unsigned ONES = 0x3c003c00;

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ void before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

__device__ void begin(void *bar, unsigned count) {
  init(bar, count);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// All threads; 32 columns.
__device__ unsigned allocate(unsigned *base) {
  if (warp() == 0) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(base)) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  before();
  __syncthreads();
  after();
  return *base;
}

__device__ void deallocate(unsigned base) {
  if (warp() == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(base));
}

__device__ void release(unsigned base) {
  before();
  __syncthreads();
  after();
  deallocate(base);
}

__device__ unsigned long long descriptor(const void *p) {
  return shared_address(p) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46;
}

// d (128 x 16, f32) = a (128 x 16) b (16 x 16)^T of halves, or adds to it.
__device__ void multiply(unsigned d, const void *a, const void *b, unsigned add, unsigned n = 16) {
  const unsigned kind = 1u << 4 | n / 8 << 17 | 8u << 24;
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
               "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d),
               "l"(descriptor(a)), "l"(descriptor(b)), "r"(kind), "r"(add)
               : "memory");
}

__device__ void commit(void *bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(bar))
               : "memory");
}

// The first of its warp's 32 rows' 16 columns.
__device__ unsigned load(unsigned at) {
  unsigned x;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(at) : "memory");
  asm volatile("tcgen05.wait::ld.sync.aligned;" : "+r"(x)::"memory");
  return static_cast<unsigned>(__uint_as_float(x));
}

// 128 threads: their row of halves x, and b in ones.
__device__ void fill(unsigned (*a)[4], unsigned (*b)[4], unsigned row, unsigned x) {
  for (unsigned i = 0; i < 8; ++i) a[row / 8 * 16 + i / 4 * 8 + row % 8][i % 4] = x;
  if (row < 32)
    for (unsigned i = 0; i < 4; ++i) b[row][i] = ONES;
}

}  // namespace

#define MATRICES                                        \
  __shared__ alignas(128) unsigned a[256][4], b[32][4]; \
  __shared__ unsigned long long done;                   \
  __shared__ unsigned word;                             \
  const unsigned t = threadIdx.x, base = allocate(&word)

KERNEL(other_parity_waited_for) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(&done);
  }
  wait(&done, RIGHT(0) FAULT(1));
  after();
  out[t] = load(base + (warp() << 21));
  release(base);
}

KERNEL(operand_refilled_while_it_is_multiplied) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  unsigned sum = 0;
  for (unsigned i = 0; i < 3; ++i) {
    fill(a, b, t, ONES + 0x04000400 * i);
    fence_async();
    before();
    __syncthreads();
    if (t == 0) {
      after();
      multiply(base, a, b, i > 0);
      RIGHT(commit(&done));
      FAULT(if (i == 2) commit(&done));
    }
    RIGHT(wait(&done, i % 2));
  }
  FAULT(wait(&done, 0));
  after();
  out[t] = sum + load(base + (warp() << 21));
  release(base);
}

// Two accumulators: warp 4 multiplies, warps 0 to 3 load.
KERNEL(accumulator_overwritten_before_it_was_loaded) {
  __shared__ alignas(128) unsigned a[256][4], b[32][4];
  __shared__ unsigned long long ready[2], drained[2];
  __shared__ unsigned word;
  const unsigned t = threadIdx.x, base = allocate(&word);
  if (t == 0)
    for (unsigned i = 0; i < 2; ++i) begin(ready + i, 1), begin(drained + i, 128);
  if (t < 128) fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  unsigned sum = 0;
  if (t == 128) {
    for (unsigned i = 0; i < 6; ++i) {
      RIGHT(wait(drained + i % 2, i / 2 % 2 ^ 1));
      RIGHT(after());
      for (unsigned k = 0; k <= i; ++k) multiply(base + 16 * (i % 2), a, b, k > 0);
      commit(ready + i % 2);
      FAULT(if (i >= 2) wait(drained + i % 2, i / 2 % 2 ^ 1));
    }
  } else if (t < 128) {
    for (unsigned i = 0; i < 6; ++i) {
      wait(ready + i % 2, i / 2 % 2);
      after();
      sum = sum * 3 + load(base + 16 * (i % 2) + (warp() << 21));
      before();
      arrive(drained + i % 2);
    }
    out[t] = sum;
  }
  __syncwarp();
  release(base);
}

KERNEL(columns_never_given_back) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(&done);
  }
  wait(&done, 0);
  after();
  out[t] = load(base + (warp() << 21));
  before();
  __syncthreads();
  after();
  RIGHT(deallocate(base));
}

KERNEL(columns_given_back_while_others_load) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(&done);
  }
  wait(&done, 0);
  after();
  const unsigned x = load(base + (warp() << 21));
  RIGHT(release(base));
  FAULT(deallocate(base));
  out[t] = x;
}

KERNEL(first_product_added_to_nothing) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  if (t == 0) {
    for (unsigned k = 0; k < 2; ++k) multiply(base, a, b, RIGHT(k > 0) FAULT(1));
    commit(&done);
  }
  wait(&done, 0);
  after();
  out[t] = load(base + (warp() << 21));
  release(base);
}

KERNEL(operands_written_without_a_proxy_fence) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES);
  RIGHT(fence_async());
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(&done);
  }
  wait(&done, 0);
  after();
  out[t] = load(base + (warp() << 21));
  release(base);
}

KERNEL(lanes_of_another_warp_loaded) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES + 0x04000400 * (t / 32));
  fence_async();
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(&done);
  }
  wait(&done, 0);
  after();
  out[t] = load(base + (RIGHT(warp()) FAULT((warp() ^ 1)) << 21));
  release(base);
}

KERNEL(columns_of_the_product_not_those_loaded) {
  MATRICES;
  if (t == 0) begin(&done, 1);
  fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(&done);
  }
  wait(&done, 0);
  after();
  out[t] = load(base + RIGHT(15) FAULT(16) + (warp() << 21));
  release(base);
}

KERNEL(second_accumulator_committed_with_the_first) {
  // Two products, a barrier for each: the first is committed twice, so that its barrier runs ahead.
  __shared__ alignas(128) unsigned a[256][4], b[32][4];
  __shared__ unsigned long long done[2];
  __shared__ unsigned word;
  const unsigned t = threadIdx.x, base = allocate(&word);
  if (t == 0) begin(done, 1), begin(done + 1, 1);
  fill(a, b, t, ONES);
  fence_async();
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, 0);
    commit(done);
    multiply(base + 16, a, b, 0);
    commit(done + RIGHT(1) FAULT(0));
  }
  wait(done, 0);
  after();
  unsigned sum = load(base + (warp() << 21));
  RIGHT(wait(done + 1, 0));
  after();
  sum += load(base + 16 + (warp() << 21));
  out[t] = sum;
  FAULT(wait(done, 1));
  release(base);
}

KERNEL(tensor_memory_stored_and_not_waited_for) {
  __shared__ unsigned word;
  const unsigned t = threadIdx.x, base = allocate(&word), at = base + (warp() % 4 << 21);
  if (warp() < 4) {
    const unsigned x = __float_as_uint(static_cast<float>(t));
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(at), "r"(x) : "memory");
    RIGHT(asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"));
  }
  before();
  __syncthreads();
  after();
  if (warp() >= 4) out[t - 128] = load(at);
  release(base);
}
