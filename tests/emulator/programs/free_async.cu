// FAULT host: stream a frees what stream b's kernel may still be reading.
#include "check.h"
__global__ void fill(float *x, float v) { x[blockIdx.x * blockDim.x + threadIdx.x] = v; }
__global__ void add(const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] += x[i]; }  //@
int main() {
  cudaStream_t a, b; cudaEvent_t filled, read;
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CK(cudaEventCreate(&filled)); CK(cudaEventCreate(&read));
  float *y = zeros<float>(256);
  CK(cudaDeviceSynchronize());
  for (int k = 1; k <= 3; k++) {
    float *x; CK(cudaMallocAsync(&x, 256 * sizeof(float), a));
    fill<<<2, 128, 0, a>>>(x, float(k));
    CK(cudaEventRecord(filled, a));
    CK(cudaStreamWaitEvent(b, filled, 0));
    add<<<2, 128, 0, b>>>(x, y);  //@
#ifndef FAULT
    CK(cudaEventRecord(read, b));
    CK(cudaStreamWaitEvent(a, read, 0));
#endif
    CK(cudaFreeAsync(x, a));  //@
  }
  CK(cudaDeviceSynchronize());
  return verdict(to_host(y, 256) == std::vector<float>(256, 6.0f));
}
