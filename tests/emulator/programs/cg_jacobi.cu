// FAULT race: between two sweeps only the block is synchronised, not the grid.
#include <cooperative_groups.h>
#include <utility>
#include "check.h"
namespace cg = cooperative_groups;
__global__ void jacobi(float *a, float *b, int n, int sweeps) {
  auto grid = cg::this_grid();
  for (int s = 0; s < sweeps; s++) {
    for (int i = int(grid.thread_rank()) + 1; i < n - 1; i += int(grid.num_threads()))
      b[i] = 0.5f * (a[i - 1] + a[i + 1]);  //@
    float *c = a; a = b; b = c;
#ifdef FAULT
    cg::this_thread_block().sync();
#else
    grid.sync();
#endif
  }
}
int main() {
  int n = 258, sweeps = 3;
  std::vector<float> x(n);
  for (int i = 0; i < n; i++) x[i] = float(i % 8) * 4;
  float *a = to_device(x), *b = to_device(x);
  std::vector<float> p = x, q = x;
  for (int s = 0; s < sweeps; s++) { for (int i = 1; i < n - 1; i++) q[i] = 0.5f * (p[i - 1] + p[i + 1]); std::swap(p, q); }
  void *args[] = {&a, &b, &n, &sweeps};
  CK(cudaLaunchCooperativeKernel((void *)jacobi, dim3(4), dim3(64), args, 0, 0));
  CK(cudaDeviceSynchronize());
  return verdict(to_host(b, n) == p);
}
