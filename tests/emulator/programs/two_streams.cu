// FAULT host: the second stream does not wait for the first one's kernel.
#include "check.h"
__global__ void produce(int *m, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) m[i] = i * i; }  //@
__global__ void consume(const int *m, int *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = m[n - 1 - i]; }  //@
int main() {
  const int n = 500;
  cudaStream_t a, b; cudaEvent_t ready;
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  int *m = zeros<int>(n), *o = zeros<int>(n);
  CK(cudaDeviceSynchronize());
  produce<<<4, 128, 0, a>>>(m, n);
#ifdef FAULT
  CK(cudaStreamWaitEvent(b, ready, 0));  //@  not recorded yet: waits for nothing
  CK(cudaEventRecord(ready, a));
#else
  CK(cudaEventRecord(ready, a));
  CK(cudaStreamWaitEvent(b, ready, 0));
#endif
  consume<<<4, 128, 0, b>>>(m, o, n);  //@
  CK(cudaStreamSynchronize(b));
  auto r = to_host(o, n); bool ok = true;
  for (int i = 0; i < n; i++) ok &= r[i] == (n - 1 - i) * (n - 1 - i);
  CK(cudaDeviceSynchronize());
  return verdict(ok);
}
