#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define BLOCK 128

template <int WIDTH>
__global__ void smooth(const float* in, float* out, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < WIDTH || i >= n - WIDTH) return;
    float sum = 0;
    for (int k = -WIDTH; k <= WIDTH; ++k) sum += in[i + k];
    out[i] = sum / (2 * WIDTH + 1);
}

int main(int, char** words) {
    const int n = atoi(words[1]), steps = 10;
    std::vector<float> values(n);
    for (float& each : values) each = rand() % 100;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemcpy(in, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(out, in, n * sizeof(float), cudaMemcpyDeviceToDevice);
    for (int step = 0; step < steps; ++step) {
        smooth<2><<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(in, out, n);
        std::swap(in, out);
    }
    cudaMemcpy(values.data(), in, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g\n", values[n / 2]);
    cudaFree(in);
    cudaFree(out);
}
