// FAULT oob: the last copies are not shortened to the array's end.
#include "check.h"
#include "ptx.cuh"
__global__ void doubled(const float *x, float *y, int n) {
  __shared__ __align__(16) float s[256];
  int t = threadIdx.x, g = blockIdx.x * 256 + 4 * t;
#ifdef FAULT
  cp16(&s[4 * t], x + g);  //@
#else
  int left = max(0, min(16, (n - g) * 4));
  cp16(&s[4 * t], left ? x + g : x, left);  // the rest of the 16 bytes is filled with zeros
#endif
  cp_commit();
  cp_wait<0>();
  for (int i = 0; i < 4; i++) if (g + i < n) y[g + i] = 2 * s[4 * t + i];
}
int main() {
  const int n = 303;
  std::vector<float> v(n), want(n);
  for (int i = 0; i < n; i++) v[i] = float(i), want[i] = float(2 * i);
  float *o = zeros<float>(n);
  doubled<<<2, 64>>>(to_device(v), o, n);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, n) == want);
}
