// FAULT race: the parity follows the stage, not how often the stage has been used.
#include "tma.h"
constexpr int STAGES = 2, W = 32, H = 4;
__global__ void column_sums(const __grid_constant__ CUtensorMap map, int *out, int tiles) {
  __shared__ __align__(128) int s[STAGES][H][W];
  __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
  int t = threadIdx.x;
  if (t == 0) {
    for (int i = 0; i < STAGES; i++) mbar_init(&full[i], 1), mbar_init(&empty[i], 32);
    mbar_init_fence();
  }
  __syncthreads();
  if (t == 32) {
    for (int k = 0; k < tiles; k++) {
      int st = k % STAGES, use = k / STAGES;
      if (use) mbar_wait(&empty[st], (use - 1) & 1);
      mbar_expect(&full[st], sizeof s[0]);
      tma_load(s[st], &map, 0, k * H, &full[st]);  //@  the last box reaches beyond the tensor: zeros, all bytes count
    }
  } else if (t < 32) {
    int acc = 0;
    for (int k = 0; k < tiles; k++) {
      int st = k % STAGES;
#ifdef FAULT
      mbar_wait(&full[st], st & 1);  //@
#else
      mbar_wait(&full[st], (k / STAGES) & 1);
#endif
      for (int r = 0; r < H; r++) acc += s[st][r][t];  //@
      mbar_arrive(&empty[st]);
    }
    out[t] = acc;
  }
}
int main() {
  const int ROWS = 22;
  std::vector<int> v(ROWS * W), want(W);
  for (int i = 0; i < ROWS * W; i++) want[i % W] += v[i] = i % 37;
  int *d = to_device(v), *o = zeros<int>(W);
  column_sums<<<1, 64>>>(tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, d, W, ROWS, W, H), o, (ROWS + H - 1) / H);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, W) == want);
}
