// FAULT race: a barrier of the block stands where cg::wait has to.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include "check.h"
namespace cg = cooperative_groups;
__global__ void reverse(const int4 *in, int *out) {
  __shared__ int4 s[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in + blockIdx.x * 64, sizeof s);  //@
#ifdef FAULT
  block.sync();
#else
  cg::wait(block);
#endif
  int t = threadIdx.x, j = 255 - t;
  out[blockIdx.x * 256 + t] = reinterpret_cast<const int *>(s)[j];  //@
}
int main() {
  std::vector<int4> v(128); std::vector<int> want(512);
  for (int i = 0; i < 512; i++) { (&v[i / 4].x)[i % 4] = i; want[i / 256 * 256 + 255 - i % 256] = i; }
  int *o = zeros<int>(512);
  reverse<<<2, 256>>>(to_device(v), o);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, 512) == want);
}
