// FAULT hang: cp.async.mbarrier.arrive without .noinc raises the count that it then lowers; nobody else arrives.
#include "check.h"
#include "ptx.cuh"
__global__ void rotate(const int4 *in, int *out) {
  __shared__ int4 s[64];
  __shared__ __align__(8) uint64_t bar;
  int t = threadIdx.x;
  if (t == 0) mbar_init(&bar, 64);
  __syncthreads();
  cp16(&s[t], in + t);
#ifdef FAULT
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(s32(&bar)) : "memory");
#else
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(s32(&bar)) : "memory");
#endif
  mbar_wait(&bar, 0);  //@
  for (int i = 0; i < 4; i++) out[t + 64 * i] = reinterpret_cast<int *>(s)[(t + 64 * i + 5) % 256];
}
int main() {
  std::vector<int4> v(64); std::vector<int> want(256);
  for (int i = 0; i < 256; i++) { (&v[i / 4].x)[i % 4] = i; want[i] = (i + 5) % 256; }
  int *o = zeros<int>(256);
  rotate<<<1, 64>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 256) == want);
}
