// Kernels that are right, though written as few are: none may be accused, refused or left hanging.

#include <assert.h>
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <mma.h>
#include <stdio.h>

extern "C" {

__global__ void early_return_then_barrier(unsigned *out, int n) {
  __shared__ unsigned s[64];
  const int t = threadIdx.x;
  if (t >= n) return;
  s[t] = t;
  __syncthreads();
  out[t] = s[n - 1 - t];
}

__global__ void early_return_then_shuffle(unsigned *out, int n) {
  const int t = threadIdx.x;
  if (t >= n) return;
  out[t] = __shfl_sync(0xffffffff, t, 0) + __reduce_add_sync(0xffffffff, 1);
}

__global__ void syncwarp_at_two_places(unsigned *out) {
  __shared__ unsigned s[32];
  const int t = threadIdx.x;
  unsigned got;
  if (t % 2) {
    s[t] = t;
    __syncwarp();
    got = s[t - 1] + 100;
  } else {
    s[t] = t;
    __syncwarp();
    got = s[t + 1] + 200;
  }
  out[t] = got;
}

struct Padded {
  unsigned a;
  unsigned char b;
  unsigned c;
};

__global__ void padded_struct_copied(unsigned *out) {
  __shared__ __align__(16) Padded from[32];
  __shared__ __align__(16) Padded to[32];
  const int t = threadIdx.x;
  from[t].a = t;
  from[t].b = t;
  from[t].c = 3 * t;
  __syncwarp();
  const unsigned *words = reinterpret_cast<const unsigned *>(from);
  for (int i = 0; i < 3; ++i) reinterpret_cast<unsigned *>(to)[32 * i + t] = words[32 * i + t];
  __syncwarp();
  out[t] = to[t].a + to[t].b + to[t].c;
}

__global__ void unwritten_read_that_is_not_used(unsigned *out, int n) {
  __shared__ unsigned s[64];
  const int t = threadIdx.x;
  if (t < n) s[t] = t;
  __syncwarp();
  const unsigned value = reinterpret_cast<volatile unsigned *>(s)[t];
  const unsigned twice = 2 * value + 1;
  out[t] = t < n ? twice : 7;
}

// Either may lose, never both.
__global__ void dekker(unsigned *flags, unsigned *out) {
  const int me = blockIdx.x;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> mine(flags[me]), other(flags[1 - me]);
  mine.store(1, cuda::memory_order_relaxed);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  out[me] = other.load(cuda::memory_order_relaxed);
}

__global__ void grid_sync(unsigned *scratch, unsigned *out) {
  const auto grid = cooperative_groups::this_grid();
  scratch[grid.thread_rank()] = grid.thread_rank();
  grid.sync();
  out[grid.thread_rank()] = scratch[grid.num_threads() - 1 - grid.thread_rank()];
}

__global__ void printing(unsigned *out) {
  if (threadIdx.x == 1) printf("thread %d of %s: %5.2f%%\n", threadIdx.x, "CTA", 12.5);
  out[threadIdx.x] = warpSize;
}

__global__ void asserting(unsigned *out, unsigned limit) {
  assert(threadIdx.x < limit);
  out[threadIdx.x] = 1;
}

__global__ void allocating(unsigned *out) {
  unsigned *own = static_cast<unsigned *>(malloc(16));
  own[2] = threadIdx.x;
  out[threadIdx.x] = own[2];
  free(own);
}

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recursion(unsigned *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 8); }

__device__ __noinline__ unsigned twice(unsigned x) { return 2 * x; }
__device__ __noinline__ unsigned square(unsigned x) { return x * x; }
__device__ unsigned (*const TABLE[])(unsigned) = {twice, square};

__global__ void function_pointers(unsigned *out, unsigned odd) {
  out[threadIdx.x] = TABLE[(threadIdx.x + odd) % 2](threadIdx.x);
}

// The last steps within a warp, with volatile in place of __syncwarp().
__global__ void volatile_reduction(const float *x, float *out) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  if (t < 32) {
    volatile float *all = s;
    for (int step = 32; step > 0; step /= 2) all[t] += all[t + step];
  }
  if (t == 0) out[0] = s[0];
}

__global__ void __cluster_dims__(4) ring_of_a_cluster(unsigned *out) {
  __shared__ unsigned s[32];
  auto cluster = cooperative_groups::this_cluster();
  const unsigned rank = cluster.block_rank();
  s[threadIdx.x] = 100 * rank + threadIdx.x;
  cluster.sync();
  out[32 * rank + threadIdx.x] = cluster.map_shared_rank(s, (rank + 1) % 4)[threadIdx.x];
  cluster.sync();
}

// Two warps take turns at a word of shared memory.
__global__ void ping_pong(unsigned *out) {
  __shared__ volatile unsigned turn;
  __shared__ unsigned count;
  if (threadIdx.x == 0) turn = count = 0;
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x % 32 == 0) {
      while (turn % 2 != threadIdx.x / 32) {
      }
      __threadfence_block();
      count += 1;
      __threadfence_block();
      turn = turn + 1;
    }
    __syncwarp();
  }
  __syncthreads();
  out[threadIdx.x] = count;
}

// 16 x 8 by 8 x 16, in TF32.
__global__ void tf32_fragments(const float *a, const float *b, float *out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> left;
  fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> right;
  fragment<accumulator, 16, 16, 8, float> sum;
  load_matrix_sync(left, a, 8);
  load_matrix_sync(right, b, 16);
  fill_fragment(sum, 0.0f);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(out, sum, 16, mem_row_major);
}

// Spinning: each ends in about the time of the work that it guards.

__global__ void a_lock(unsigned *lock, unsigned *count) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *count += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

__global__ void a_lock_of_every_lane(unsigned *lock, unsigned *count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *reinterpret_cast<volatile unsigned *>(count) += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

__global__ void a_flag(unsigned *flag, unsigned *data, unsigned *out) {
  if (blockIdx.x == 0) {
    unsigned sum = 0;
    for (int i = 0; i < 300; ++i) sum = sum * 3 + i;
    data[threadIdx.x] = sum;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *reinterpret_cast<volatile unsigned *>(flag) = 1;
  } else {
    if (threadIdx.x == 0)
      while (*reinterpret_cast<volatile unsigned *>(flag) == 0) {
      }
    __syncthreads();
    __threadfence();
    out[(blockIdx.x - 1) * blockDim.x + threadIdx.x] = data[threadIdx.x];
  }
}

__global__ void a_barrier_of_the_grid(unsigned *arrived, unsigned *scratch, unsigned *out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  for (int round = 0; round < 3; ++round) {
    scratch[round * n + t] = t + round;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1);
      while (*reinterpret_cast<volatile unsigned *>(arrived) < gridDim.x * (round + 1)) {
      }
      __threadfence();
    }
    __syncthreads();
    out[t] = scratch[round * n + n - 1 - t];
  }
}

__global__ void look_back(unsigned long long *status, const unsigned *in, unsigned *out) {
  const unsigned tile = blockIdx.x;
  unsigned sum = in[tile], before = 0;
  volatile unsigned long long *all = status;
  if (tile > 0) {
    all[tile] = 1ull << 32 | sum;
    for (int at = tile - 1;; --at) {
      unsigned long long word;
      do {
        word = all[at];
      } while (word >> 32 == 0);
      before += static_cast<unsigned>(word);
      if (word >> 32 == 2) break;
    }
  }
  all[tile] = 2ull << 32 | (before + sum);
  out[tile] = before + sum;
}

// The last CTA adds up what all have left.
__global__ void last_cta_adds(unsigned *ticket, unsigned *partial, unsigned *out) {
  __shared__ bool last;
  partial[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(ticket, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (last) {
    unsigned sum = 0;
    for (unsigned cta = 0; cta < gridDim.x; ++cta) sum += partial[cta * blockDim.x + threadIdx.x];
    out[threadIdx.x] = sum;
  }
}
}
