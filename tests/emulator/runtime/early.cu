// A launch that begins beside the one before and waits for it: before what, argv[1] says.
#include <cstdio>
#include <cstring>

constexpr int kThreads = 256, kBlocks = 40;

__global__ void primary(const int* in, int* out) {
  cudaTriggerProgrammaticLaunchCompletion();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = 3 * in[i];
}

enum How { kRight, kReads, kWrites, kOneWaits, kOneWaitsLate, kAtomics };

__global__ void dependent(const int* x, int* in, int* sum, const int* w, How how) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  int value = w[i];
  if (how == kReads) value += x[i];
  if (how == kWrites) in[i] = 1;
  if (how == kOneWaitsLate) value += x[i];
  if (how == kOneWaits || how == kOneWaitsLate) {
    if (threadIdx.x == 0) cudaGridDependencySynchronize();
    __syncthreads();
  } else {
    cudaGridDependencySynchronize();
  }
  if (how == kRight || how == kOneWaits) value += __ldg(&x[i ^ 1]);
  in[i] = value;
  if (how == kAtomics) atomicAdd(sum, value);
}

int main(int, char** words) {
  const char* const names[] = {"right", "reads", "writes", "one-waits", "one-waits-late", "atomics"};
  int how = 0;
  while (strcmp(words[1], names[how])) ++how;
  const size_t bytes = kThreads * kBlocks * sizeof(int);
  int *in, *x, *sum, *w;
  cudaMalloc(&in, bytes), cudaMalloc(&x, bytes), cudaMalloc(&w, bytes), cudaMalloc(&sum, 4);
  cudaMemset(in, 1, bytes), cudaMemset(w, 0, bytes), cudaMemset(sum, 0, 4);
  cudaDeviceSynchronize();
  primary<<<kBlocks, kThreads>>>(in, x);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = kBlocks, config.blockDim = kThreads;
  config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, dependent, (const int*)x, in, sum, (const int*)w, How(how));
  cudaDeviceSynchronize();
  cudaFree(in), cudaFree(x), cudaFree(sum), cudaFree(w);
}
