// FAULT mask: a full-mask shuffle inside a loop that some lanes have left.
#include "check.h"
__global__ void segment_max(const int *x, const int *end, int *out) {
  int lane = threadIdx.x, b = blockIdx.x ? end[blockIdx.x - 1] : 0, e = end[blockIdx.x], m = INT_MIN;
#ifdef FAULT
  for (int i = b + lane; i < e; i += 32) {
    int v = x[i];
    for (int d = 16; d; d >>= 1) v = max(v, __shfl_xor_sync(~0u, v, d));  //@
    m = max(m, v);
  }
#else
  for (int i0 = b; i0 < e; i0 += 32) {
    int i = i0 + lane, v = i < e ? x[i] : INT_MIN;
    for (int d = 16; d; d >>= 1) v = max(v, __shfl_xor_sync(~0u, v, d));
    m = max(m, v);
  }
#endif
  if (lane == 0) out[blockIdx.x] = m;
}
int main() {
  std::vector<int> end{40, 41, 41, 90}, x(90), want(4, INT_MIN);
  for (int i = 0; i < 90; i++) { x[i] = i * 53 % 91; int s = i < 40 ? 0 : i < 41 ? 1 : 3; want[s] = std::max(want[s], x[i]); }
  int *o = zeros<int>(4);
  segment_max<<<4, 32>>>(to_device(x), to_device(end), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 4) == want);
}
