// FAULT race: one buffer instead of two, with one barrier per step.
#include "check.h"
template <class T, int N> __global__ void scan(const T *in, T *out) {
#ifdef FAULT
  __shared__ T s[1][N];
  constexpr int flip = 0;
#else
  __shared__ T s[2][N];
  constexpr int flip = 1;
#endif
  int t = threadIdx.x, cur = 0;
  s[0][t] = in[t];
  for (int d = 1; d < N; d *= 2) {
    __syncthreads();
    T v = s[cur][t] + (t >= d ? s[cur][t - d] : T(0));  //@
    cur ^= flip;
    s[cur][t] = v;  //@  with two buffers the next barrier is enough: nobody reads this one in this step
  }
  out[t] = s[cur][t];
}
int main() {
  std::vector<double> v(128, 1.0);
  double *d = to_device(v), *o = zeros<double>(128);
  scan<double, 128><<<1, 128>>>(d, o);
  CK(cudaDeviceSynchronize());
  auto r = to_host(o, 128);
  bool ok = true; for (int i = 0; i < 128; i++) ok &= r[i] == i + 1;
  return verdict(ok);
}
