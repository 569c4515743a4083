// FAULT oob: row * pitch overflows int for the last rows of a large matrix.
#include "check.h"
#ifdef FAULT
using offset_t = int;
#else
using offset_t = long long;
#endif
__global__ void mark(char *m, offset_t pitch, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) m[r * pitch + r % 7] = char(r);  //@
}
int main() {
  const int rows = 66; const size_t pitch = 1 << 25;  // 2.2 GB
  char *m; CK(cudaMalloc(&m, rows * pitch));
  mark<<<3, 32>>>(m, pitch, rows);
  CK(cudaDeviceSynchronize());
  bool ok = true;
  for (int r = 0; r < rows; r++) { char c; CK(cudaMemcpy(&c, m + r * pitch + r % 7, 1, cudaMemcpyDeviceToHost)); ok &= c == char(r); }
  return verdict(ok);
}
