// FAULT oob: the insertion writes element K of a local array of K.
#include <algorithm>
#include "check.h"
template <int K> __global__ void topk(const float *x, int per, float *out) {
  float best[K];
  for (int i = 0; i < K; i++) best[i] = -INFINITY;
  const float *mine = x + (blockIdx.x * blockDim.x + threadIdx.x) * per;
  for (int i = 0; i < per; i++) {
    float v = mine[i];
#ifdef FAULT
    int p = K;
#else
    int p = K - 1;
    if (v <= best[p]) continue;
#endif
    while (p > 0 && best[p - 1] < v) { best[p] = best[p - 1]; p--; }  //@
    best[p] = v;  //@
  }
  for (int i = 0; i < K; i++) out[(blockIdx.x * blockDim.x + threadIdx.x) * K + i] = best[i];
}
int main() {
  const int T = 64, P = 20, K = 5;
  std::vector<float> x(T * P), want;
  for (int i = 0; i < T * P; i++) x[i] = float((i * 67) % 1283);
  for (int t = 0; t < T; t++) {
    std::vector<float> v(x.begin() + t * P, x.begin() + (t + 1) * P);
    std::sort(v.rbegin(), v.rend());
    want.insert(want.end(), v.begin(), v.begin() + K);
  }
  float *o = zeros<float>(T * K);
  topk<K><<<2, 32>>>(to_device(x), P, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, T * K) == want);
}
