// FAULT race: the flag is stored relaxed, so the message is not ordered before it.
#include <cuda/atomic>
#include "check.h"
using flag_t = cuda::atomic<int, cuda::thread_scope_device>;
__global__ void pass(int *box, flag_t *flag, int *out, int rounds) {
  if (threadIdx.x) return;
  for (int r = 1; r <= rounds; r++) {
    if (blockIdx.x == 0) {
      while (flag->load(cuda::memory_order_acquire) != 2 * r - 2) {}
      box[0] = r * 10;  //@
      box[1] = r * 11;  //@
#ifdef FAULT
      flag->store(2 * r - 1, cuda::memory_order_relaxed);
#else
      flag->store(2 * r - 1, cuda::memory_order_release);
#endif
    } else {
      while (flag->load(cuda::memory_order_acquire) != 2 * r - 1) {}
      out[r - 1] = box[0] + box[1];  //@
      flag->store(2 * r, cuda::memory_order_release);
    }
  }
}
int main() {
  int *box = zeros<int>(2), *out = zeros<int>(3);
  flag_t *f; CK(cudaMalloc(&f, sizeof(flag_t))); CK(cudaMemset(f, 0, sizeof(flag_t)));
  pass<<<2, 32>>>(box, f, out, 3);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(out, 3) == std::vector<int>{21, 42, 63});
}
