// FAULT race: block_sum's scratch is written by the second call while slow warps still read the first call's.
#include "check.h"
template <int WARPS> __device__ float block_sum(float v, float *part) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
#ifndef FAULT
  __syncthreads();  // the last call's reads of part are over
#endif
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;  //@
  __syncthreads();
  float s = 0;
  for (int w = 0; w < WARPS; w++) s += part[w];  //@
  return s;
}
template <int THREADS> __global__ void layernorm(const float *x, float *y) {
  __shared__ float part[THREADS / 32];
  float v = x[blockIdx.x * THREADS + threadIdx.x];
  float mean = block_sum<THREADS / 32>(v, part) / THREADS;
  float var = block_sum<THREADS / 32>((v - mean) * (v - mean), part) / THREADS;
  y[blockIdx.x * THREADS + threadIdx.x] = (v - mean) * rsqrtf(var + 1e-5f);
}
int main() {
  std::vector<float> x(3 * 128);
  for (size_t i = 0; i < x.size(); i++) x[i] = float((i * 37) % 101);
  float *dx = to_device(x), *dy = zeros<float>(x.size());
  layernorm<128><<<3, 128>>>(dx, dy);
  CK(cudaDeviceSynchronize());
  auto y = to_host(dy, x.size());
  double s = 0; for (int i = 0; i < 128; i++) s += y[i];
  return verdict(s * s < 1e-4);
}
