// FAULT race: wait_group orders a thread's own copies only; the barrier that publishes them is missing.
#include "check.h"
#include "ptx.cuh"
__global__ void transpose8(const int4 *in, int *out) {
  __shared__ __align__(16) int s[32][32];
  int t = threadIdx.x;  // 256 threads, a 32 x 32 tile
  cp16(&s[t / 8][t % 8 * 4], in + t);  //@
  cp_commit();
  cp_wait<0>();
#ifndef FAULT
  __syncthreads();
#endif
  for (int i = 0; i < 4; i++) out[(t / 32 + 8 * i) * 32 + t % 32] = s[t % 32][t / 32 + 8 * i];  //@
}
int main() {
  std::vector<int4> v(256); std::vector<int> want(1024);
  for (int i = 0; i < 1024; i++) { (&v[i / 4].x)[i % 4] = i; want[i % 32 * 32 + i / 32] = i; }
  int *o = zeros<int>(1024);
  transpose8<<<1, 256>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 1024) == want);
}
