// FAULT race: the offset of the second array in dynamic shared memory forgets sizeof(half), so the arrays overlap.
#include <cuda_fp16.h>
#include "check.h"
constexpr int ROWS = 8, COLS = 64;
__global__ void rowmax(const half *x, float *out, half *copy) {
  extern __shared__ __align__(16) unsigned char smem[];
  half *tile = reinterpret_cast<half *>(smem);
#ifdef FAULT
  float *best = reinterpret_cast<float *>(smem + ROWS * COLS);
#else
  float *best = reinterpret_cast<float *>(smem + ROWS * COLS * sizeof(half));
#endif
  int lane = threadIdx.x % 32, row = threadIdx.x / 32;
  float m = -INFINITY;
  for (int c = lane; c < COLS; c += 32) {
    half h = x[row * COLS + c];
    tile[row * COLS + c] = h;  //@
    m = fmaxf(m, __half2float(h));
  }
  for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_down_sync(~0u, m, d));
  if (lane == 0) best[row] = m;  //@
  __syncthreads();
  for (int c = lane; c < COLS; c += 32) copy[row * COLS + c] = tile[row * COLS + COLS - 1 - c];
  if (threadIdx.x < ROWS) out[threadIdx.x] = best[threadIdx.x];
}
int main() {
  std::vector<half> x(ROWS * COLS);
  for (int i = 0; i < ROWS * COLS; i++) x[i] = __float2half(float((i * 29) % 127));
  half *dx = to_device(x), *dc = zeros<half>(x.size());
  float *o = zeros<float>(ROWS);
  rowmax<<<1, 32 * ROWS, ROWS * COLS * sizeof(half) + ROWS * sizeof(float)>>>(dx, o, dc);
  CK(cudaDeviceSynchronize());
  auto c = to_host(dc, x.size());
  bool ok = true;
  for (int i = 0; i < ROWS * COLS; i++)
    ok &= __half2float(c[i]) == __half2float(x[i / COLS * COLS + COLS - 1 - i % COLS]);
  return verdict(ok);
}
