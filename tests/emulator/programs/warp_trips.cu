// FAULT barrier: warps go round a loop with a barrier a different number of times.
#include "check.h"
__global__ void rows(const int *len, const int *x, int pitch, int *out) {
  __shared__ int s[4][32], longest;
  int lane = threadIdx.x % 32, w = threadIdx.x / 32, n = len[w], acc = 0;
  if (threadIdx.x == 0) longest = 0;
  __syncthreads();
  if (lane == 0) atomicMax(&longest, n);
  __syncthreads();
#ifdef FAULT
  int trips = (n + 31) / 32;
#else
  int trips = (longest + 31) / 32;
#endif
  for (int k = 0; k < trips; k++) {
    int c = k * 32 + lane;
    s[w][lane] = c < n ? x[w * pitch + c] : 0;
    __syncthreads();  //@
    acc += s[w][lane] + s[w ^ 1][lane];
    __syncthreads();
  }
  acc = __reduce_add_sync(~0u, acc);
  if (lane == 0) out[w] = acc;
}
int main() {
  std::vector<int> len{100, 32, 70, 1}, x(4 * 128), want(4);
  for (int i = 0; i < 512; i++) x[i] = i % 19;
  for (int w = 0; w < 4; w++) for (int v : {w, w ^ 1}) for (int c = 0; c < len[v]; c++) want[w] += x[v * 128 + c];
  int *o = zeros<int>(4);
  rows<<<1, 128>>>(to_device(len), to_device(x), 128, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 4) == want);
}
