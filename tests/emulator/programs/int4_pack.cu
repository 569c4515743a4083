// FAULT race: two threads put their nibbles into one byte with a plain read-modify-write.
#include "check.h"
__global__ void quantise(const float *x, unsigned char *q, int n, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FAULT
  if (i < n) {
    int v = min(15, max(0, __float2int_rn(x[i] * scale)));
    int shift = (i & 1) * 4;
    q[i / 2] = (q[i / 2] & ~(15 << shift)) | (v << shift);  //@
  }
#else
  int v = i < n ? min(15, max(0, __float2int_rn(x[i] * scale))) : 0;
  int hi = __shfl_down_sync(~0u, v, 1);
  if (i < n && !(i & 1)) q[i / 2] = static_cast<unsigned char>(v | hi << 4);
#endif
}
int main() {
  const int n = 301;
  std::vector<float> x(n);
  for (int i = 0; i < n; i++) x[i] = float(i % 16);
  float *d = to_device(x); auto *q = zeros<unsigned char>((n + 1) / 2);
  quantise<<<(n + 127) / 128, 128>>>(d, q, n, 1.0f);
  CK(cudaDeviceSynchronize());
  auto r = to_host(q, (n + 1) / 2); bool ok = true;
  for (int i = 0; i < n; i++) ok &= ((r[i / 2] >> (i & 1) * 4) & 15) == i % 16;
  return verdict(ok);
}
