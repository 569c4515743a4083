// FAULT race: input and output are one array; CTAs read halos that their neighbours overwrite.
#include "check.h"
template <int R> __global__ void blur(const float *in, float *out, int n) {
  __shared__ float s[128 + 2 * R];
  int base = blockIdx.x * 128, t = threadIdx.x;
  for (int j = t; j < 128 + 2 * R; j += 128) {
    int g = base + j - R;
    s[j] = g >= 0 && g < n ? in[g] : 0.0f;  //@
  }
  __syncthreads();
  float v = 0;
  for (int j = 0; j <= 2 * R; j++) v += s[t + j];
  if (base + t < n) out[base + t] = v;  //@
}
int main() {
  const int n = 300;
  std::vector<float> x(n);
  for (int i = 0; i < n; i++) x[i] = float(i % 10);
  float *a = to_device(x), *b = zeros<float>(n);
#ifdef FAULT
  b = a;
#endif
  blur<2><<<(n + 127) / 128, 128>>>(a, b, n);
  CK(cudaDeviceSynchronize());
  auto y = to_host(b, n); bool ok = true;
  for (int i = 0; i < n; i++) { float s = 0; for (int j = i - 2; j <= i + 2; j++) if (j >= 0 && j < n) s += x[j]; ok &= s == y[i]; }
  return verdict(ok);
}
