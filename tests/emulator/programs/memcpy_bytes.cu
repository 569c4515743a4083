// FAULT uninitialised: cudaMemcpy gets a number of elements, so three quarters of the input are never copied.
#include "check.h"
__global__ void square(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];  //@
}
int main() {
  const int n = 200;
  std::vector<float> x(n), y(n), want(n);
  for (int i = 0; i < n; i++) x[i] = float(i), want[i] = float(i * i);
  float *dx, *dy;
  CK(cudaMalloc(&dx, n * sizeof *dx)); CK(cudaMalloc(&dy, n * sizeof *dy));
#ifdef FAULT
  CK(cudaMemcpy(dx, x.data(), n, cudaMemcpyHostToDevice));  //@
#else
  CK(cudaMemcpy(dx, x.data(), n * sizeof *dx, cudaMemcpyHostToDevice));
#endif
  square<<<2, 128>>>(dx, dy, n);
  CK(cudaMemcpy(y.data(), dy, n * sizeof *dy, cudaMemcpyDeviceToHost));
  CK(cudaFree(dx)); CK(cudaFree(dy));
  return verdict(y == want);
}
