// FAULT uninitialised: there are more bins than threads, and only the first ones are cleared.
#include "check.h"
template <int BINS> __global__ void histogram(const unsigned char *x, int n, unsigned *out) {
  __shared__ unsigned h[BINS];
#ifdef FAULT
  if (threadIdx.x < BINS) h[threadIdx.x] = 0;
#else
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) h[b] = 0;
#endif
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[x[i]], 1u);  //@
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) if (h[b]) atomicAdd(&out[b], h[b]);  //@
}
int main() {
  const int n = 1000;
  std::vector<unsigned char> x(n); std::vector<unsigned> want(256);
  for (int i = 0; i < n; i++) want[x[i] = static_cast<unsigned char>(i * 11)]++;
  unsigned *o = zeros<unsigned>(256);
  histogram<256><<<2, 192>>>(to_device(x), n, o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 256) == want);
}
