// FAULT hang: threads without work leave without dropping out of the barrier.
#include <cuda/barrier>
#include "check.h"
#pragma nv_diag_suppress static_var_with_dynamic_init
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void halve(const int *in, int *out, int n) {
  __shared__ int s[64];
  __shared__ barrier bar;
  int t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x);
  s[t] = t < n ? in[t] : 0;
  __syncthreads();
  for (int width = 32; width; width /= 2) {
    if (t >= width) {
#ifndef FAULT
      bar.arrive_and_drop();
#endif
      return;
    }
    int v = s[t] + s[t + width];
    bar.arrive_and_wait();  //@
    s[t] = v;
    bar.arrive_and_wait();
  }
  *out = s[0];
}
int main() {
  std::vector<int> v(50); int want = 0;
  for (int i = 0; i < 50; i++) want += v[i] = i * 3;
  int *o = zeros<int>(1);
  halve<<<1, 64>>>(to_device(v), o, 50);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 1)[0] == want);
}
