// FAULT order: nothing makes the peer's mbarrier initialised before st.async counts on it.
#include "check.h"
#include "ptx.cuh"
__global__ void __cluster_dims__(2) exchange(const int *in, int *out) {
  __shared__ __align__(8) uint64_t bar;
  __shared__ int box[32];
  int t = threadIdx.x;
  uint32_t peer = cluster_rank() ^ 1;
  if (t == 0) { mbar_init(&bar, 1); mbar_init_fence(); mbar_expect(&bar, sizeof box); }  //@
#ifdef FAULT
  __syncthreads();
#else
  cluster_arrive();
  cluster_wait();
#endif
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
               ::"r"(mapa(s32(&box[t]), peer)), "r"(in[blockIdx.x * 32 + t]), "r"(mapa(s32(&bar), peer)) : "memory");  //@
  mbar_wait_cluster(&bar, 0);
  out[blockIdx.x * 32 + t] = box[t];
  cluster_arrive();
  cluster_wait();
}
int main() {
  std::vector<int> v(64), want(64);
  for (int i = 0; i < 64; i++) v[i] = i, want[i ^ 32] = i;
  int *o = zeros<int>(64);
  exchange<<<2, 32>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 64) == want);
}
