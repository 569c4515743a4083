// The mean of an array: sums of its pieces, then one warp that adds and divides them.
#include <cstdio>

__global__ void partial_sums(const float* in, float* out, int count) {
    __shared__ float tile[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = i < count ? in[i] : 0.0f;
    for (int step = 128; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}

__global__ void divide(const float* sums, float* mean, int pieces, int count) {
    float total = 0.0f;
    for (int i = threadIdx.x; i < pieces; i += 32) total += sums[i];
    for (int step = 16; step; step /= 2) total += __shfl_down_sync(0xffffffff, total, step);
    if (threadIdx.x == 0) *mean = total / count;
}

int main() {
    printf("a program of its own has its arrays here\n");
}
