// FAULT race: the cluster barrier's arrival is relaxed though it must publish shared memory.
#include "check.h"
#include "ptx.cuh"
__global__ void __cluster_dims__(2) rotate(const int *in, int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];  //@
#ifdef FAULT
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  cluster_arrive();
#endif
  int mine = t * 1000;  // independent work between arriving and waiting
  cluster_wait();
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(mapa(s32(&s[63 - t]), cluster_rank() ^ 1)) : "memory");  //@
  out[blockIdx.x * 64 + t] = v + mine;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");  // reads only: nothing to publish
  cluster_wait();
}
int main() {
  std::vector<int> v(128), want(128);
  for (int i = 0; i < 128; i++) v[i] = i;
  for (int i = 0; i < 128; i++) want[i] = (i < 64 ? 127 - i : 127 - i) + (i % 64) * 1000;
  int *o = zeros<int>(128);
  rotate<<<2, 64>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 128) == want);
}
