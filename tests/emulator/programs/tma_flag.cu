// FAULT race: wait_group.read says that the source was read, not that global memory was written; the flag comes too early.
#include "tma.h"
__global__ void produce_consume(const __grid_constant__ CUtensorMap map, const int *data, int *out, int *flag) {
  __shared__ __align__(128) int s[8][32];
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    s[t / 32][t % 32] = t * 5;
    proxy_fence();
    __syncthreads();
    if (t == 0) {
      tma_store(&map, 0, 0, s);  //@
      bulk_commit();
#ifdef FAULT
      bulk_wait_read<0>();
#else
      bulk_wait<0>();
#endif
      asm volatile("fence.proxy.async;" ::: "memory");
      __threadfence();
      atomicExch(flag, 1);
    }
  } else {
    if (t == 0) { while (!atomicAdd(flag, 0)) {} __threadfence(); }
    __syncthreads();
    out[t] = __ldcg(data + t) + 1;  //@
  }
}
int main() {
  std::vector<int> want;
  for (int i = 0; i < 256; i++) want.push_back(i * 5 + 1);
  int *d = zeros<int>(256), *o = zeros<int>(256), *f = zeros<int>(1);
  produce_consume<<<2, 256>>>(tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, d, 32, 8, 32, 8), d, o, f);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 256) == want);
}
