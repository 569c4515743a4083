// FAULT race: lanes of one warp with equal keys add to one word without an atomic.
#include "check.h"
constexpr int BINS = 16, WARPS = 4;
__global__ void histogram(const int *key, int n, int *out) {
  __shared__ int h[WARPS][BINS];
  int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  for (int b = lane; b < BINS; b += 32) h[w][b] = 0;
  __syncwarp();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {  // n is a multiple of the block
    int b = key[i];
#ifdef FAULT
    h[w][b]++;  //@
#else
    unsigned peers = __match_any_sync(~0u, b);
    if (lane == __ffs(peers) - 1) h[w][b] += __popc(peers);
#endif
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x < BINS) {
    int s = 0;
    for (int i = 0; i < WARPS; i++) s += h[i][threadIdx.x];
    out[threadIdx.x] = s;
  }
}
int main() {
  std::vector<int> k(512), want(BINS);
  for (int i = 0; i < 512; i++) want[k[i] = (i * i + 3 * i) % BINS]++;
  int *dk = to_device(k), *d = zeros<int>(BINS);
  histogram<<<1, 32 * WARPS>>>(dk, 512, d);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(d, BINS) == want);
}
