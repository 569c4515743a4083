#include <cstdio>

__global__ void reverse(const float* in, float* out, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) tile[threadIdx.x] = in[i];
    if (i < n) out[i] = tile[63 - threadIdx.x];
}

int main() {
    const int n = 1024;
    float *in, *out, last;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    reverse<<<n / 64, 64>>>(in, out, n);
    cudaMemcpy(&last, out + n - 1, sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g\n", last);
    cudaFree(in);
    cudaFree(out);
}
