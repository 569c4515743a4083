// Kernels made of CUDA's own libraries: CUB, cooperative groups, cuda::barrier, cuda::pipeline.

#include <cooperative_groups.h>

#include <cassert>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

constexpr int THREADS = 128;

extern "C" __global__ void reduce(int* out, const int* in) {
  using Reduce = cub::BlockReduce<int, THREADS>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(in[threadIdx.x]);
  if (threadIdx.x == 0) *out = sum;
}

extern "C" __global__ void scan(int* out, const int* in) {
  using Scan = cub::BlockScan<int, THREADS>;
  __shared__ typename Scan::TempStorage storage;
  int value = in[threadIdx.x];
  Scan(storage).InclusiveSum(value, value);
  out[threadIdx.x] = value;
}

extern "C" __global__ void sort(int* out, const int* in) {
  using Sort = cub::BlockRadixSort<int, THREADS, 1>;
  __shared__ typename Sort::TempStorage storage;
  int key[1] = {in[threadIdx.x]};
  Sort(storage).Sort(key);
  out[threadIdx.x] = key[0];
}

extern "C" __global__ void groups(int* out, const int* in) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int value = in[threadIdx.x];
  for (int step = 4; step > 0; step /= 2) value += tile.shfl_xor(value, step);
  const unsigned odd = tile.ballot(in[threadIdx.x] % 2 != 0);
  assert(odd < 256);
  out[threadIdx.x] = 256 * value + odd;
}

// Threads exchange words through shared memory, ordered by a cuda::barrier.
extern "C" __global__ void exchange(int* out, const int* in) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int words[THREADS];
  if (threadIdx.x == 0) init(&barrier, THREADS);
  __syncthreads();
  words[threadIdx.x] = in[threadIdx.x];
  barrier.arrive_and_wait();
  out[threadIdx.x] = words[THREADS - 1 - threadIdx.x];
}

// Four steps through two buffers: cp.async of the next while this one is added.
extern "C" __global__ void pipelined(int* out, const int* in) {
  __shared__ int buffers[2][THREADS];
  auto pipe = cuda::make_pipeline();
  const auto fetch = [&](int step) {
    pipe.producer_acquire();
    cuda::memcpy_async(&buffers[step % 2][threadIdx.x], in + step * THREADS / 4 + threadIdx.x,
                       cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
  };
  int sum = 0;
  fetch(0);
  for (int step = 0; step < 4; ++step) {
    if (step < 3) fetch(step + 1);
    if (step < 3) {
      cuda::pipeline_consumer_wait_prior<1>(pipe);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipe);
    }
    sum += buffers[step % 2][threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
