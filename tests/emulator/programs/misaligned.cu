// FAULT misaligned: half2 loads of rows with an odd number of elements.
#include <cuda_fp16.h>
#include "check.h"
__global__ void rowsum(const half *x, int cols, float *out) {
  const half *r = x + blockIdx.x * cols;
  int t = threadIdx.x, head = 0;
  float s = 0;
#ifndef FAULT
  head = reinterpret_cast<uintptr_t>(r) / 2 & 1;  // an odd row begins with one element of its own
  if (head && t == 0) s += __half2float(r[0]);
#endif
  int pairs = (cols - head) / 2;
  for (int i = t; i < pairs; i += 32) {
    float2 v = __half22float2(*reinterpret_cast<const half2 *>(r + head + 2 * i));  //@
    s += v.x + v.y;
  }
  if (t == 1 && (cols - head) % 2) s += __half2float(r[cols - 1]);
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  if (t == 0) out[blockIdx.x] = s;
}
int main() {
  const int R = 5, C = 77;
  std::vector<half> x(R * C); std::vector<float> want(R);
  for (int i = 0; i < R * C; i++) { x[i] = __float2half(float(i % 9)); want[i / C] += float(i % 9); }
  float *o = zeros<float>(R);
  rowsum<<<R, 32>>>(to_device(x), C, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, R) == want);
}
