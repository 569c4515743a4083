// FAULT race: the sender fills the peer's buffer again before the peer has read it.
#include "check.h"
#include "ptx.cuh"
constexpr int N = 64;
__global__ void __cluster_dims__(2) send(const int *in, int *out, int rounds) {
  __shared__ __align__(16) int src[N], box[N];
  __shared__ __align__(8) uint64_t bar;
  int t = threadIdx.x;
  if (t == 0) { mbar_init(&bar, 1); mbar_init_fence(); }
  cluster_arrive(); cluster_wait();
  uint32_t rank = cluster_rank();
  for (int r = 0; r < rounds; r++) {
    if (rank == 0) {
      src[t] = in[r * N + t];
      proxy_fence();
      __syncthreads();
      if (t == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(mapa(s32(box), 1)), "r"(s32(src)), "r"(uint32_t(sizeof box)), "r"(mapa(s32(&bar), 1)) : "memory");  //@
    } else {
      if (t == 0) mbar_expect(&bar, sizeof box);
      mbar_wait_cluster(&bar, r & 1);
      out[r * N + t] = box[t] + 1;  //@
    }
#ifdef FAULT
    __syncthreads();
#else
    cluster_arrive(); cluster_wait();  // the copy has arrived and has been read: both buffers are free
#endif
  }
#ifdef FAULT
  cluster_arrive(); cluster_wait();
#endif
}
int main() {
  std::vector<int> v(3 * N), want;
  for (int i = 0; i < 3 * N; i++) v[i] = i * 3, want.push_back(i * 3 + 1);
  int *o = zeros<int>(3 * N);
  send<<<2, N>>>(to_device(v), o, 3);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 3 * N) == want);
}
