// FAULT host: a pinned staging buffer is filled again while the copy from it may still be running.
#include "check.h"
__global__ void add(const int *x, int *y) { y[threadIdx.x] += x[threadIdx.x]; }
int main() {
  int *stage[2], *x[2], *y = zeros<int>(128); cudaEvent_t copied[2]; cudaStream_t s;
  CK(cudaDeviceSynchronize());
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int i = 0; i < 2; i++) {
    CK(cudaMallocHost(&stage[i], 128 * sizeof(int)));
    CK(cudaMalloc(&x[i], 128 * sizeof(int)));
    CK(cudaEventCreate(&copied[i]));
  }
  for (int k = 0; k < 6; k++) {
    int b = k % 2;
#ifndef FAULT
    if (k >= 2) CK(cudaEventSynchronize(copied[b]));
#endif
    for (int i = 0; i < 128; i++) stage[b][i] = k * i;  //@
    CK(cudaMemcpyAsync(x[b], stage[b], 128 * sizeof(int), cudaMemcpyHostToDevice, s));  //@
    CK(cudaEventRecord(copied[b], s));
    add<<<1, 128, 0, s>>>(x[b], y);
  }
  CK(cudaStreamSynchronize(s));
  auto r = to_host(y, 128); bool ok = true;
  for (int i = 0; i < 128; i++) ok &= r[i] == 15 * i;
  return verdict(ok);
}
