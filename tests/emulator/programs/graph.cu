// FAULT host: the graph's second kernel does not depend on the first one, though it reads its output.
#include "check.h"
__global__ void first(int *m, int a) { m[threadIdx.x] = a + threadIdx.x; }  //@
__global__ void second(const int *m, int *o) { o[threadIdx.x] += m[127 - threadIdx.x]; }  //@
int main() {
  int *m = zeros<int>(128), *o = zeros<int>(128), a = 5;
  CK(cudaDeviceSynchronize());
  cudaGraph_t g; cudaGraphExec_t e; cudaGraphNode_t n1, n2; cudaStream_t s;
  CK(cudaStreamCreate(&s));
  CK(cudaGraphCreate(&g, 0));
  void *p1[] = {&m, &a}, *p2[] = {&m, &o};
  cudaKernelNodeParams k{}; k.gridDim = dim3(1); k.blockDim = dim3(128);
  k.func = (void *)first; k.kernelParams = p1;
  CK(cudaGraphAddKernelNode(&n1, g, nullptr, 0, &k));
  k.func = (void *)second; k.kernelParams = p2;
#ifdef FAULT
  CK(cudaGraphAddKernelNode(&n2, g, nullptr, 0, &k));  //@
#else
  CK(cudaGraphAddKernelNode(&n2, g, &n1, 1, &k));
#endif
  CK(cudaGraphInstantiate(&e, g, 0));
  for (int i = 0; i < 2; i++) CK(cudaGraphLaunch(e, s));  // launches of one executable graph run in order
  CK(cudaStreamSynchronize(s));
  auto r = to_host(o, 128); bool ok = true;
  for (int i = 0; i < 128; i++) ok &= r[i] == 2 * (5 + 127 - i);
  return verdict(ok);
}
