// FAULT uninitialised: the workspace's counters are allocated with the partial sums, but nobody clears them.
#include "check.h"
__global__ void partition(const int *x, int n, int *out, int *counter) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool odd = x[i] & 1;
  int p = atomicAdd(&counter[odd], 1);  //@
  out[odd ? n - 1 - p : p] = x[i];
}
int main() {
  const int n = 200;
  std::vector<int> x(n); long sum = 0; int even = 0;
  for (int i = 0; i < n; i++) { x[i] = i * i + i / 3; sum += x[i]; even += !(x[i] & 1); }
  char *work; CK(cudaMalloc(&work, n * sizeof(int) + 256));
  int *out = reinterpret_cast<int *>(work), *counter = reinterpret_cast<int *>(work + n * sizeof(int));
#ifndef FAULT
  CK(cudaMemsetAsync(counter, 0, 2 * sizeof(int)));
#endif
  partition<<<2, 128>>>(to_device(x), n, out, counter);
  CK(cudaDeviceSynchronize());
  auto r = to_host(out, n); bool ok = true;
  for (int i = 0; i < n; i++) { sum -= r[i]; ok &= (r[i] & 1) == (i >= even); }
  return verdict(ok && sum == 0);
}
