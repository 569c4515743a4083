// FAULT race: flag and value are two words without a fence, instead of one 64-bit word.
#include <cuda/atomic>
#include "check.h"
using word = unsigned long long;
struct State { word *packed; int *value; int *flag; int *ticket; };
__device__ void publish(State s, int b, int v) {
#ifdef FAULT
  s.value[b] = v;  //@
  cuda::atomic_ref<int, cuda::thread_scope_device>(s.flag[b]).store(1, cuda::memory_order_relaxed);
#else
  cuda::atomic_ref<word, cuda::thread_scope_device>(s.packed[b]).store(1ull << 32 | unsigned(v), cuda::memory_order_relaxed);
#endif
}
__device__ int await(State s, int b) {
#ifdef FAULT
  while (!cuda::atomic_ref<int, cuda::thread_scope_device>(s.flag[b]).load(cuda::memory_order_relaxed)) {}
  return s.value[b];  //@
#else
  word w;  // value and flag are one word: no order between words is needed
  while (!((w = cuda::atomic_ref<word, cuda::thread_scope_device>(s.packed[b]).load(cuda::memory_order_relaxed)) >> 32)) {}
  return int(unsigned(w));
#endif
}
__global__ void scan(const int *in, int *out, State s) {
  __shared__ int b, before, warp[2];
  int t = threadIdx.x;
  if (t == 0) b = atomicAdd(s.ticket, 1);  // a CTA waits only for tickets that are already running
  __syncthreads();
  int v = in[b * 64 + t];
  for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(~0u, v, d); if (t % 32 >= d) v += u; }
  if (t % 32 == 31) warp[t / 32] = v;
  __syncthreads();
  if (t >= 32) v += warp[0];
  if (t == 63) { before = b ? await(s, b - 1) : 0; publish(s, b, before + v); }
  __syncthreads();
  out[b * 64 + t] = before + v;
}
int main() {
  const int B = 5;
  std::vector<int> v(B * 64), want; int a = 0;
  for (size_t i = 0; i < v.size(); i++) v[i] = int(i * 5 % 9) - 3, want.push_back(a += v[i]);
  State s{zeros<word>(B), zeros<int>(B), zeros<int>(B), zeros<int>(1)};
  int *d = to_device(v), *o = zeros<int>(v.size());
  scan<<<B, 64>>>(d, o, s);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, v.size()) == want);
}
