#include <cstdio>

__device__ int counter = 10;
__constant__ int factor;
static __device__ int own = 1;

__device__ int twice(int x) {
  if (x == 31) printf("there\n");
  return 2 * x + own;
}

void set_factor(int value) { cudaMemcpyToSymbol(factor, &value, sizeof value); }

int read_counter() {
  int value;
  cudaMemcpyFromSymbol(&value, counter, sizeof value);
  return value;
}
