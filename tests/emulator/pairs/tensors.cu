// Matrices: ldmatrix, mma.sync and wgmma, in the loops that are written around them.

#include "faults.cuh"
#include "hopper.cuh"

namespace {

constexpr unsigned ONES = 0x3c003c00;  // Two halves.

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N>
__device__ void wait_group(float (&d)[4]) {
  asm volatile("wgmma.wait_group.sync.aligned %4;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "n"(N) : "memory");
}

// d (64 x 8) += a (64 x 16) b (16 x 8), b in 256 bytes of shared memory.
__device__ void multiply(float (&d)[4], unsigned a, const unsigned *b, unsigned add = 1) {
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 8ull << 32;
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, p, 1, 1, 0; }"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a), "l"(descriptor), "r"(add)
               : "memory");
}

__device__ unsigned whole(const float (&d)[4]) { return static_cast<unsigned>(d[0] + d[1] + d[2] + d[3]); }

__device__ void begin(void *bar, unsigned count) {
  init(bar, count);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void product(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace

// Rows of 16 halves, all those of a row alike; the product with ones is 16 times them.
KERNEL(matrix_loaded_before_the_barrier) {
  __shared__ alignas(16) unsigned s[2][16][8];
  const unsigned t = threadIdx.x;
  float d[4] = {};
  const unsigned b[2] = {ONES, ONES};
  for (unsigned i = 0; i < 4; ++i) {
    if (t < 32)
      for (unsigned k = 0; k < 4; ++k) s[i % 2][t / 2][t % 2 * 4 + k] = ONES;
    RIGHT(__syncthreads());
    unsigned a[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(&s[i % 2][lane() % 16][lane() / 16 * 4]))
                 : "memory");
    FAULT(__syncthreads());
    product(d, a, b);
  }
  out[t] = whole(d);
}

KERNEL(matrices_loaded_past_the_last_row) {
  __shared__ alignas(16) unsigned s[16][8];
  const unsigned l = threadIdx.x;
  for (unsigned k = 0; k < 4; ++k) s[l / 2][l % 2 * 4 + k] = ONES;
  __syncwarp();
  unsigned a[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(shared_address(&s[RIGHT(l % 16) FAULT(l % 16 + 1)][l / 16 * 4]))
               : "memory");
  float d[4] = {};
  const unsigned b[2] = {ONES, ONES};
  product(d, a, b);
  out[l] = whole(d);
}

KERNEL(result_stored_as_matrices_and_read_by_others) {
  __shared__ alignas(16) unsigned s[2][8][4];
  const unsigned t = threadIdx.x;
  const unsigned x = in[t];
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(shared_address(s[warp()][lane() % 8])), "r"(x)
               : "memory");
  RIGHT(__syncthreads());
  FAULT(__syncwarp());
  out[t] = s[1 - warp()][lane() / 4][lane() % 4];
}

// A stage is free when the product that reads it is through, not the one before.
KERNEL(stage_released_with_its_product_in_flight) {
  __shared__ alignas(128) unsigned b[2][64];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x;
  if (t == 0)
    for (unsigned i = 0; i < 2; ++i) begin(full + i, 32), begin(empty + i, 128);
  __syncthreads();
  if (t >= 128) {
    for (unsigned i = 0; i < 6; ++i) {
      wait(empty + i % 2, i / 2 % 2 ^ 1);
      for (unsigned k = 0; k < 2; ++k) b[i % 2][lane() + 32 * k] = ONES + 0x04000400 * (i / 2);
      fence_async();
      arrive(full + i % 2);
    }
    return;
  }
  float d[4] = {};
  for (unsigned i = 0; i < 6; ++i) {
    wait(full + i % 2, i / 2 % 2);
    fence();
    multiply(d, ONES, b[i % 2]);
    commit();
    RIGHT(wait_group<1>(d));
    RIGHT(if (i) arrive(empty + (i - 1) % 2));
    FAULT(wait_group<1>(d));
    FAULT(arrive(empty + i % 2));
  }
  wait_group<0>(d);
  out[t] = whole(d);
}

KERNEL(product_waited_for_without_a_commit) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x;
  if (t < 64) b[t] = ONES;
  fence_async();
  __syncthreads();
  float d[4] = {};
  fence();
  multiply(d, ONES, b);
  RIGHT(commit());
  wait_group<0>(d);
  out[t] = whole(d);
  FAULT(commit());
}

KERNEL(accumulators_cleared_after_the_fence) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x;
  if (t < 64) b[t] = ONES;
  fence_async();
  __syncthreads();
  float d[4];
  FAULT(fence());
  for (unsigned i = 0; i < 4; ++i) d[i] = static_cast<float>(in[t] % 64 + i);
  asm volatile("" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]));
  RIGHT(fence());
  multiply(d, ONES, b);
  commit();
  wait_group<0>(d);
  out[t] = whole(d);
}

// Two warpgroups take turns at the tensor core; the first turn is given before the loop.
KERNEL(first_turn_that_nobody_gave) {
  __shared__ alignas(128) unsigned b[64];
  const unsigned t = threadIdx.x, group = t / 128;
  if (t < 64) b[t] = ONES;
  fence_async();
  __syncthreads();
  float d[4] = {};
  RIGHT(if (group == 1) asm volatile("bar.arrive 1, 256;" ::: "memory"));
  for (unsigned i = 0; i < 3; ++i) {
    asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
    fence();
    multiply(d, ONES, b);
    commit();
    if (group == 0 || i < 2) asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory");
    wait_group<0>(d);
  }
  out[t] = whole(d);
}
