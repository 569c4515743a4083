// FAULT race: the hand-made barrier over the grid uses atomics of block scope.
#include <cuda/atomic>
#include "check.h"
#ifdef FAULT
constexpr auto scope = cuda::thread_scope_block;
#else
constexpr auto scope = cuda::thread_scope_device;
#endif
__device__ void grid_barrier(unsigned *count, unsigned round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, scope> c(*count);
    c.fetch_add(1, cuda::memory_order_acq_rel);
    while (c.load(cuda::memory_order_acquire) < gridDim.x * round) {}
  }
  __syncthreads();
}
__global__ void two_phases(const int *in, int *mid, int *out, unsigned *count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  mid[i] = in[i] * 3;  //@
  grid_barrier(count, 1);
  int v = mid[n - 1 - i];  //@
  grid_barrier(count, 2);
  mid[i] = v;
  out[i] = v;
}
int main() {
  std::vector<int> v(4 * 64), want(4 * 64);
  for (int i = 0; i < 256; i++) v[i] = i, want[255 - i] = 3 * i;
  int *d = to_device(v), *m = zeros<int>(256), *o = zeros<int>(256); unsigned *c = zeros<unsigned>(1);
  void *args[] = {&d, &m, &o, &c};
  CK(cudaLaunchCooperativeKernel((void *)two_phases, dim3(4), dim3(64), args, 0, 0));
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 256) == want);
}
