// FAULT oob: the number of float4 is rounded up, and the last one reaches beyond the array.
#include "check.h"
__global__ void axpy(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
#ifdef FAULT
  int n4 = (n + 3) / 4;
#else
  int n4 = n / 4;
#endif
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    float4 u = reinterpret_cast<const float4 *>(x)[i];  //@
    float4 v = reinterpret_cast<float4 *>(y)[i];  //@
    v.x += a * u.x, v.y += a * u.y, v.z += a * u.z, v.w += a * u.w;
    reinterpret_cast<float4 *>(y)[i] = v;  //@
  }
#ifndef FAULT
  int i = 4 * n4 + threadIdx.x;
  if (blockIdx.x == 0 && i < n) y[i] += a * x[i];
#endif
}
int main() {
  const int n = 1021;
  std::vector<float> x(n), y(n), want(n);
  for (int i = 0; i < n; i++) x[i] = float(i), y[i] = float(2 * i), want[i] = float(5 * i);
  float *dy = to_device(y);
  axpy<<<2, 64>>>(3, to_device(x), dy, n);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(dy, n) == want);
}
