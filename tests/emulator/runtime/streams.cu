// Two streams on the same memory, ordered or not as argv[1] says.
#include <cstdio>
#include <cstring>

__global__ void fill(int* x, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

__global__ void add(const int* x, int* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += x[i];
}

__global__ void count(int* n) { atomicAdd(n, 1); }

int main(int, char** words) {
  const auto is = [&](const char* word) { return !strcmp(words[1], word); };
  const int n = 1000;
  int *x, *sum, *host;
  cudaMalloc(&x, n * sizeof(int)), cudaMalloc(&sum, n * sizeof(int));
  cudaMallocHost(&host, n * sizeof(int));
  cudaMemset(x, 0, n * sizeof(int)), cudaMemset(sum, 0, n * sizeof(int));
  cudaDeviceSynchronize();
  cudaStream_t one, other;
  const unsigned flags = is("non-blocking") ? cudaStreamNonBlocking : cudaStreamDefault;
  cudaStreamCreateWithFlags(&one, flags), cudaStreamCreate(&other);
  cudaEvent_t event;
  cudaEventCreate(&event);
  if (is("atomics")) {
    count<<<1, 32, 0, one>>>(x), count<<<1, 32, 0, other>>>(x);
  } else if (is("halves")) {
    fill<<<2, 256, 0, one>>>(x, n / 2, 1), fill<<<2, 256, 0, other>>>(x + n / 2, n / 2, 2);
  } else if (is("copy")) {
    fill<<<4, 256, 0, one>>>(x, n, 1);
    cudaMemcpyAsync(host, x, n * sizeof(int), cudaMemcpyDeviceToHost, other);
  } else if (is("non-blocking")) {
    fill<<<4, 256, 0, one>>>(x, n, 1);
    cudaMemcpy(host, x, n * sizeof(int), cudaMemcpyDeviceToHost);
  } else if (is("default")) {  // which waits for both
    fill<<<4, 256, 0, one>>>(x, n, 1);
    add<<<4, 256>>>(x, sum, n);
    fill<<<4, 256, 0, other>>>(x, n, 1);
  } else {
    fill<<<4, 256, 0, one>>>(x, n, 1);
    if (is("event")) cudaEventRecord(event, one), cudaStreamWaitEvent(other, event);
    if (is("early-event")) cudaStreamWaitEvent(other, event), cudaEventRecord(event, one);
    if (is("waits")) cudaStreamSynchronize(one);
    add<<<4, 256, 0, other>>>(x, sum, n);
  }
  cudaDeviceSynchronize();
  cudaStreamDestroy(one), cudaStreamDestroy(other), cudaEventDestroy(event);
  cudaFree(x), cudaFree(sum), cudaFreeHost(host);
}
