// FAULT race: the first split stores the bias plainly while others already add to the output.
#include "check.h"
__global__ void gemv(const float *a, const float *x, const float *bias, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x, part = cols / gridDim.y;
  if (r >= rows) return;
  float acc = 0;
  for (int c = blockIdx.y * part; c < (blockIdx.y + 1) * part; c++) acc += a[r * cols + c] * x[c];
#ifdef FAULT
  if (blockIdx.y == 0) y[r] = acc + bias[r];  //@
  else atomicAdd(&y[r], acc);  //@
#else
  if (blockIdx.y == 0) acc += bias[r];
  atomicAdd(&y[r], acc);
#endif
}
int main() {
  const int R = 70, C = 48;
  std::vector<float> a(R * C), x(C), b(R), want(R);
  for (int i = 0; i < C; i++) x[i] = float(i % 3);
  for (int i = 0; i < R; i++) { want[i] = b[i] = float(i); for (int c = 0; c < C; c++) want[i] += (a[i * C + c] = float((i + c) % 5)) * x[c]; }
  float *y = zeros<float>(R);
  gemv<<<dim3(2, 3), 64>>>(to_device(a), to_device(x), to_device(b), y, R, C);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(y, R) == want);
}
