// FAULT race: the buffer of the product before is loaded again while one wgmma group, which reads it, is still allowed to run.
#include "check.h"
#include "wgmma.cuh"
__global__ void __launch_bounds__(128) mm(const half *a, const half *b, float *c, int ks) {  // a, b: in core-matrix order, tile by tile
  __shared__ __align__(128) half sa[2][64 * 16], sb[2][8 * 16];
  __shared__ __align__(8) uint64_t full[2];
  int t = threadIdx.x;
  if (t == 0) { mbar_init(full, 1); mbar_init(full + 1, 1); mbar_init_fence(); }
  __syncthreads();
  auto load = [&](int k) {
    if (t == 0 && k < ks) {
      mbar_expect(full + k % 2, sizeof sa[0] + sizeof sb[0]);
      bulk_load(sa[k % 2], a + k * 64 * 16, sizeof sa[0], full + k % 2);  //@
      bulk_load(sb[k % 2], b + k * 8 * 16, sizeof sb[0], full + k % 2);  //@
    }
  };
  load(0);
  load(1);
  float d[4] = {};
  for (int k = 0; k < ks; k++) {
    mbar_wait(full + k % 2, k / 2 & 1);
    wg_fence();
    wg_mma(d, desc(sa[k % 2], 1024, 128), desc(sb[k % 2], 128, 256), k > 0);  //@
    wg_commit();
#ifdef FAULT
    wg_wait<1>();
#else
    wg_wait<0>();
#endif
    __syncthreads();  // all four warps' products have read the stage
    load(k + 2);
  }
  wg_wait<0>();
  int row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
  c[row * 8 + col] = d[0], c[row * 8 + col + 1] = d[1];
  c[(row + 8) * 8 + col] = d[2], c[(row + 8) * 8 + col + 1] = d[3];
}
int main() {
  const int T = 5;
  std::vector<half> a(T * 1024), b(T * 128);
  auto at = [](int r, int k, int rows) { return (k / 8 * (rows / 8) + r / 8) * 64 + r % 8 * 8 + k % 8; };
  std::vector<float> want(512);
  for (int i = 0; i < T * 1024; i++) a[i] = __float2half(float(i % 7) - 3);
  for (int i = 0; i < T * 128; i++) b[i] = __float2half(float(i % 5) - 2);
  for (int t = 0; t < T; t++) for (int i = 0; i < 64; i++) for (int j = 0; j < 8; j++) for (int k = 0; k < 16; k++)
    want[i * 8 + j] += __half2float(a[t * 1024 + at(i, k, 64)]) * __half2float(b[t * 128 + at(j, k, 8)]);
  float *c = zeros<float>(512);
  mm<<<1, 128>>>(to_device(a), to_device(b), c, T);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(c, 512) == want);
}
