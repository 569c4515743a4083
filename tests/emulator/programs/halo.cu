// FAULT oob: the right halo is written one radius too far, into the array behind the tile.
#include "check.h"
template <int R, int B> __global__ void stencil(const int *in, const int *weight, int *out, int n) {
  __shared__ int tile[B + 2 * R];
  __shared__ int w[2 * R + 1];
  int t = threadIdx.x, g = blockIdx.x * B + t;
  auto load = [&](int i) { return i >= 0 && i < n ? in[i] : 0; };
  if (t < 2 * R + 1) w[t] = weight[t];
  tile[t + R] = load(g);
  if (t < R) {
    tile[t] = load(g - R);
#ifdef FAULT
    tile[t + B + 2 * R] = load(g + B);  //@
#else
    tile[t + B + R] = load(g + B);
#endif
  }
  __syncthreads();
  int s = 0;
  for (int j = 0; j <= 2 * R; j++) s += w[j] * tile[t + j];
  if (g < n) out[g] = s;
}
int main() {
  const int n = 150, R = 3;
  std::vector<int> v(n), w(2 * R + 1), want(n);
  for (int i = 0; i < n; i++) v[i] = i % 21;
  for (int j = 0; j <= 2 * R; j++) w[j] = j + 1;
  for (int i = 0; i < n; i++) for (int j = 0; j <= 2 * R; j++) if (i + j - R >= 0 && i + j - R < n) want[i] += w[j] * v[i + j - R];
  int *o = zeros<int>(n);
  stencil<R, 64><<<3, 64>>>(to_device(v), to_device(w), o, n);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, n) == want);
}
