// FAULT race: the CTA's count is read by thread 0 while other warps still add to it.
#include "check.h"
__global__ void compact(const int *in, int n, int *out, int *count) {
  __shared__ int here, base;
  for (int c = 0; c < n; c += blockDim.x) {
    if (threadIdx.x == 0) here = 0;
    __syncthreads();
    int v = in[c + threadIdx.x], pos = -1;
    if (v & 1) pos = atomicAdd(&here, 1);  //@
#ifndef FAULT
    __syncthreads();
#endif
    if (threadIdx.x == 0) base = atomicAdd(count, here);  //@
    __syncthreads();
    if (pos >= 0) out[base + pos] = v;  // base is written again two barriers later
  }
}
int main() {
  std::vector<int> v(512);
  for (int i = 0; i < 512; i++) v[i] = i * 3 + i / 7;
  int want = 0; long sum = 0;
  for (int x : v) if (x & 1) want++, sum += x;
  int *d = to_device(v), *o = zeros<int>(512), *c = zeros<int>(1);
  compact<<<1, 128>>>(d, 512, o, c);
  CK(cudaDeviceSynchronize());
  auto r = to_host(o, 512); for (int x : r) sum -= x;
  return verdict(to_host(c, 1)[0] == want && sum == 0);
}
