// Sums of rows: each of SPLITS CTAs adds up a part of a row, then a second launch the parts.
constexpr int SPLITS = KX_SPLITS;

__global__ void partial_sums(const float* x, double* sums, int columns) {
    const int part = columns / SPLITS;
    const float* mine = x + (size_t(blockIdx.x) * SPLITS + blockIdx.y) * part;
    double sum = 0;
    for (int i = threadIdx.x; i < part; i += 32) sum += mine[i];
    for (int lane = 16; lane; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x == 0) sums[blockIdx.x * SPLITS + blockIdx.y] = sum;
}

__global__ void add_up(const double* sums, float* y) {
    const int row = blockIdx.x * 32 + threadIdx.x;
    double sum = 0;
    for (int split = 0; split < SPLITS; ++split) sum += sums[row * SPLITS + split];
    y[row] = sum;
}

// For the test suite of some other kernel.
__global__ void never_launched() {}
