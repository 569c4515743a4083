// With other.cu, device code of two files: a function, variables, and a name that both have.
#include <cstdio>

extern __device__ int counter;
extern __constant__ int factor;
static __device__ int own = 3;
__device__ int twice(int);
void set_factor(int);
int read_counter();

__global__ void fill(int* out) {
  out[threadIdx.x] = twice(threadIdx.x) * factor + own;
  atomicAdd(&counter, 1);
  if (threadIdx.x == 0) printf("here\n");
}

int main() {
  int *out, result[32], bad = 0;
  cudaMalloc(&out, sizeof result);
  set_factor(5);
  fill<<<1, 32>>>(out);
  cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) bad += result[i] != (2 * i + 1) * 5 + 3;
  printf("%d wrong, %d counted\n", bad, read_counter());
  cudaFree(out);
}
