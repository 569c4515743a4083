// Small kernels whose threads exchange data by barriers, atomics, flags and shuffles.

#include <cuda/atomic>

extern "C" {

// out[cta] = sum of 128 values: a tree in shared memory.
__global__ void reduce_tree(const unsigned *in, unsigned *out) {
  __shared__ unsigned s[128];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
#pragma unroll 1
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// The same by shuffles, and one word per warp.
__global__ void reduce_warps(const unsigned *in, unsigned *out) {
  __shared__ unsigned s[4];
  const int t = threadIdx.x;
  unsigned sum = in[blockIdx.x * 128 + t];
#pragma unroll 1
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (t % 32 == 0) s[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    sum = t < 4 ? s[t] : 0;
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    sum += __shfl_xor_sync(0xffffffff, sum, 2);
    if (t == 0) out[blockIdx.x] = sum;
  }
}

// Inclusive sums of 64 values, steps in shared memory with two barriers each.
__global__ void scan(const unsigned *in, unsigned *out) {
  __shared__ unsigned s[64];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < 64; step *= 2) {
    const unsigned left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
    __syncthreads();
  }
  out[t] = s[t];
}

// 64 x 32 transposed through a tile that is used twice.
__global__ void transpose_twice(const unsigned *in, unsigned *out) {
  __shared__ unsigned tile[32][33];
  const int x = threadIdx.x, y = threadIdx.y;
#pragma unroll 1
  for (int half = 0; half < 2; ++half) {
    for (int row = y; row < 32; row += 4) tile[row][x] = in[(half * 32 + row) * 32 + x];
    __syncthreads();
    for (int row = y; row < 32; row += 4) out[row * 64 + half * 32 + x] = tile[x][row];
    __syncthreads();
  }
}

// 8 bins: counted in shared memory, then added to those of all CTAs.
__global__ void histogram(const unsigned *in, unsigned *out) {
  __shared__ unsigned bins[8];
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[in[blockIdx.x * 64 + t] % 8], 1);
  __syncthreads();
  if (t < 8) atomicAdd(&out[t], bins[t]);
}

// Lanes of a warp exchange words twice.
__global__ void lanes_exchange(const unsigned *in, unsigned *out) {
  __shared__ unsigned s[32];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncwarp();
  const unsigned next = s[(t + 1) % 32];
  __syncwarp();
  s[t] = 2 * next;
  __syncwarp();
  out[t] = s[(t + 2) % 32];
}

// Votes, matches and a shuffle among half of the lanes.
__global__ void votes(const unsigned *in, unsigned *out) {
  const int t = threadIdx.x;
  const unsigned value = in[t];
  unsigned found = __ballot_sync(0xffffffff, value & 1);
  found ^= __match_any_sync(0xffffffff, value % 4);
  if (t < 16) found += __shfl_sync(0x0000ffff, value, t ^ 3) + __reduce_add_sync(0xffff, value);
  out[t] = found;
}

// Warps 0 and 1 make, warps 2 and 3 use: two named barriers for each of two buffers.
__global__ void named_barriers(const unsigned *in, unsigned *out) {
  __shared__ unsigned buffer[2][64];
  const int t = threadIdx.x;
  if (t < 64) {
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      if (i >= 2) asm volatile("bar.sync %0, 128;" ::"r"(3 + i % 2) : "memory");
      buffer[i % 2][t] = in[i * 64 + t];
      asm volatile("bar.arrive %0, 128;" ::"r"(1 + i % 2) : "memory");
    }
  } else {
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      asm volatile("bar.sync %0, 128;" ::"r"(1 + i % 2) : "memory");
      out[i * 64 + t - 64] = 3 * buffer[i % 2][127 - t];
      if (i < 2) asm volatile("bar.arrive %0, 128;" ::"r"(3 + i % 2) : "memory");
    }
  }
}

// All CTAs meet between rounds.
__global__ void grid_barrier(const unsigned *in, unsigned *arrived, unsigned *scratch,
                             unsigned *out) {
  const int n = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = in[t];
#pragma unroll 1
  for (int round = 0; round < 2; ++round) {
    scratch[round * n + t] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1);
      while (*reinterpret_cast<volatile unsigned *>(arrived) < gridDim.x * (round + 1)) {
      }
      __threadfence();
    }
    __syncthreads();
    value += __ldcg(&scratch[round * n + (t + blockDim.x) % n]);
  }
  out[t] = value;
}

// Who comes last adds up what all CTAs have left.
__global__ void last_adds(const unsigned *in, unsigned *ticket, unsigned *partial, unsigned *out) {
  __shared__ bool last;
  const int t = threadIdx.x;
  partial[blockIdx.x * 64 + t] = 2 * in[blockIdx.x * 64 + t];
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(ticket, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
#pragma unroll 1
  for (int cta = 0; cta < gridDim.x; ++cta) sum += __ldcg(&partial[cta * 64 + t]);
  out[t] = sum;
}

// Decoupled look-back: each CTA's sum is that of those before it and its own.
__global__ void look_back(const unsigned *in, unsigned *flags, unsigned *sums, unsigned *out) {
  using cuda::memory_order_acquire, cuda::memory_order_release;
  const int cta = blockIdx.x;
  unsigned sum = in[cta];
  if (cta > 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> before(flags[cta - 1]);
    while (before.load(memory_order_acquire) == 0) {
    }
    sum += sums[cta - 1];
  }
  sums[cta] = sum;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> mine(flags[cta]);
  mine.store(1, memory_order_release);
  out[cta] = sum;
}

// A lock around a word that all CTAs count up.
__global__ void spin_lock(const unsigned *in, unsigned *lock, unsigned *out) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *out += in[blockIdx.x];
    __threadfence();
    atomicExch(lock, 0);
  }
}

// A reduction across two CTAs of a cluster, through the other's shared memory.
__global__ void __cluster_dims__(2) cluster_exchange(const unsigned *in, unsigned *out) {
  __shared__ unsigned s[64];
  const int t = threadIdx.x;
  unsigned rank, remote;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  s[t] = in[blockIdx.x * 64 + t];
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;"
               ::: "memory");
  const unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(&s[63 - t]));
  unsigned value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(mine), "r"(rank ^ 1));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote) : "memory");
  out[blockIdx.x * 64 + t] = value + s[t];
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;"
               ::: "memory");
}

// A warp waits for the votes of another: bar.red.
__global__ void barrier_votes(const unsigned *in, unsigned *out) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(in[t] > 40);
  out[t] = __syncthreads_or(in[t] == 7) ? count : 1000 + count;
}
}
