#include <cuda_runtime.h>

__global__ void scale(const float* x, float* y, float factor, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}

extern "C" void solve(const float* x, float* y, float factor, size_t n) {
    scale<<<(n + 127) / 128, 128>>>(x, y, factor, n);
    cudaDeviceSynchronize();
}
