// FAULT race: the dependent kernel does not wait for the primary one, which lets it start early.
#include "check.h"
__global__ void primary(int *m) {
  cudaTriggerProgrammaticLaunchCompletion();
  m[threadIdx.x] = 3 * threadIdx.x;  //@
}
__global__ void dependent(const int *m, const int *w, int *o) {
  int v = w[threadIdx.x];  // not written by the primary: may be read before
#ifndef FAULT
  cudaGridDependencySynchronize();
#endif
  o[threadIdx.x] = v + m[255 - threadIdx.x];  //@
}
int main() {
  std::vector<int> w(256);
  for (int i = 0; i < 256; i++) w[i] = i * 7;
  int *m = zeros<int>(256), *o = zeros<int>(256), *dw = to_device(w);
  cudaStream_t s; CK(cudaStreamCreate(&s));
  CK(cudaDeviceSynchronize());
  primary<<<1, 256, 0, s>>>(m);
  cudaLaunchAttribute a{}; a.id = cudaLaunchAttributeProgrammaticStreamSerialization; a.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c{}; c.gridDim = dim3(1); c.blockDim = dim3(256); c.stream = s; c.attrs = &a; c.numAttrs = 1;
  CK(cudaLaunchKernelEx(&c, dependent, (const int *)m, (const int *)dw, o));  //@
  CK(cudaStreamSynchronize(s));
  auto r = to_host(o, 256); bool ok = true;
  for (int i = 0; i < 256; i++) ok &= r[i] == 7 * i + 3 * (255 - i);
  return verdict(ok);
}
