#include <cuda_runtime.h>

constexpr int BLOCK = 32, ITEMS = 1;
using Real = double;

__global__ void scale(const float* x, float* y, float factor, size_t n) {
    size_t first = blockIdx.x * size_t(BLOCK * ITEMS) + threadIdx.x;
    for (int k = 0; k < ITEMS; k++)
        if (first + k * BLOCK < n) y[first + k * BLOCK] = Real(x[first + k * BLOCK]) * factor;
}

extern "C" void solve(const float* x, float* y, float factor, size_t n) {
    scale<<<(n + BLOCK * ITEMS - 1) / (BLOCK * ITEMS), BLOCK>>>(x, y, factor, n);
    cudaDeviceSynchronize();
}
