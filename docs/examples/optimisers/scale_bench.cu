// A benchmark over sizes and block sizes, as with nvbench. On a GPU: nvcc scale_bench.cu && ./a.out.
// `kernelexp exec scale_bench.cu` checks every launch of it without one; `kernelexp capture --kernel
// scale -- ./a.out` keeps one on a GPU, and `kernelexp capture --replay` times it, warm and cold.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void scale(const float* x, float* y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}

template <class Call>
float median_us(Call call) {
    float times[5];
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (float& time : times) {
        cudaEventRecord(begin), call(), cudaEventRecord(end), cudaEventSynchronize(end);
        cudaEventElapsedTime(&time, begin, end);
        for (float* t = &time; t > times && t[-1] > *t; --t) { float less = *t; *t = t[-1]; t[-1] = less; }
    }
    return 1e3f * times[2];
}

int main() {
    for (int n : {1 << 10, (1 << 14) + 1}) {
        float *x, *y;
        cudaMalloc(&x, n * sizeof *x), cudaMalloc(&y, n * sizeof *y);
        cudaMemset(x, 0, n * sizeof *x);
        for (int block : {128, 256})
            printf("n=%d block=%d: %.1f us\n", n, block,
                   median_us([&] { scale<<<(n + block - 1) / block, block>>>(x, y, 2.0f, n); }));
        cudaFree(x), cudaFree(y);
    }
}
