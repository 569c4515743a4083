// Kernels that are wrong, or fast because they do not do the work; each must be found out.
#include "row_scale.cuh"

#define ROWS_SCALED const float *x, const float *scale, float *y, float *sums

// Launches of this module so far, counted by the last CTA to leave.
__device__ unsigned launches, left;
__device__ inline void count_launch() {
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&left, 1) == gridDim.x - 1) {
        left = 0;
        launches += 1;
        __threadfence();
    }
}

extern "C" __global__ void does_nothing(ROWS_SCALED) {}

extern "C" __global__ void writes_zeros(ROWS_SCALED) {
    for (int col = threadIdx.x; col < COLS; col += blockDim.x)
        y[blockIdx.x * (size_t)COLS + col] = 0.0f;
    if (threadIdx.x == 0) sums[blockIdx.x] = 0.0f;
}

// Honest until it has been checked once or twice.
extern "C" __global__ void stops_working(ROWS_SCALED) {
    if (launches < 4) do_row(x, scale, y, sums, blockIdx.x);
    count_launch();
}

extern "C" __global__ void every_other_launch(ROWS_SCALED) {
    if (launches % 2 == 0) do_row(x, scale, y, sums, blockIdx.x);
    count_launch();
}

// Keeps the sums of the first inputs, and gives them back when it sees that address again.
__device__ const float* kept_for;
__device__ float kept_sums[65536];
extern "C" __global__ void keeps_sums(ROWS_SCALED) {
    do_row(x, scale, y, sums, blockIdx.x);
    __syncthreads();
    if (kept_for == x && threadIdx.x == 0) sums[blockIdx.x] = kept_sums[blockIdx.x];
    if (kept_for == nullptr && threadIdx.x == 0) {
        kept_sums[blockIdx.x] = sums[blockIdx.x];
        __threadfence();
        if (atomicAdd(&left, 1) == gridDim.x - 1) {
            left = 0;
            kept_for = x;
        }
    }
}

// Goes on reading the first inputs that it was ever given.
__device__ const float* first_x;
extern "C" __global__ void first_inputs(ROWS_SCALED) {
    __shared__ const float* source;
    if (threadIdx.x == 0) {
        const unsigned long long old =
            atomicCAS(reinterpret_cast<unsigned long long*>(&first_x), 0ull,
                      reinterpret_cast<unsigned long long>(x));
        source = old ? reinterpret_cast<const float*>(old) : x;
    }
    __syncthreads();
    do_row(source, scale, y, sums, blockIdx.x);
}

extern "C" __global__ void leaves_out_last_row(ROWS_SCALED) {
    if (blockIdx.x != gridDim.x - 1) do_row(x, scale, y, sums, blockIdx.x);
}

extern "C" __global__ void leaves_out_sums(ROWS_SCALED) {
    for (int col = threadIdx.x; col < COLS; col += blockDim.x)
        y[blockIdx.x * (size_t)COLS + col] = x[blockIdx.x * (size_t)COLS + col] * scale[col];
}

extern "C" __global__ void one_nan(ROWS_SCALED) {
    do_row(x, scale, y, sums, blockIdx.x);
    __syncthreads();
    if (blockIdx.x == 7 && threadIdx.x == 0) y[7 * COLS + 7] = __int_as_float(0x7fffffff);
}

extern "C" __global__ void one_wrong_element(ROWS_SCALED) {
    do_row(x, scale, y, sums, blockIdx.x);
    __syncthreads();
    if (blockIdx.x == gridDim.x / 2 && threadIdx.x == 0)
        y[blockIdx.x * (size_t)COLS + 511] += 0.01f;
}

// Products rounded to 8 bits of mantissa, as bfloat16 would.
extern "C" __global__ void low_precision(ROWS_SCALED) {
    float sum = 0.0f;
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        const float value = x[blockIdx.x * (size_t)COLS + col] * scale[col];
        const float rounded = __int_as_float((__float_as_int(value) + 0x8000) & 0xffff0000);
        y[blockIdx.x * (size_t)COLS + col] = rounded;
        sum += rounded;
    }
    sum = cta_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void swaps_two_rows(ROWS_SCALED) {
    const int row = blockIdx.x < 2 ? 1 - (int)blockIdx.x : (int)blockIdx.x;
    do_row(x + (row - (int)blockIdx.x) * COLS, scale, y, sums, blockIdx.x);
}

extern "C" __global__ void writes_past_the_end(ROWS_SCALED) {
    do_row(x, scale, y, sums, blockIdx.x);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) y[gridDim.x * (size_t)COLS + 3] = 1.0f;
}

extern "C" __global__ void zeroes_its_input(float* x, const float* scale, float* y, float* sums) {
    do_row(x, scale, y, sums, blockIdx.x);
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) x[5] = 0.0f;
}

// The barrier between writing the tile and reading it is missing, and half of the warps are slow.
extern "C" __global__ void lacks_a_barrier(ROWS_SCALED) {
    __shared__ volatile float tile[COLS];
    if (threadIdx.x / 32 % 2) __nanosleep(2000);
    for (int col = threadIdx.x; col < COLS; col += blockDim.x)
        tile[col] = x[blockIdx.x * (size_t)COLS + col] * scale[col];
    float sum = 0.0f;
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        const float value = tile[col ^ 32];
        y[blockIdx.x * (size_t)COLS + (col ^ 32)] = value;
        sum += value;
    }
    sum = cta_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Not wrong results but none: the driver has to speak.
extern "C" __global__ void reads_address_zero(ROWS_SCALED) {
    y[blockIdx.x] = *reinterpret_cast<volatile float*>(threadIdx.x * 4ull);
}

extern "C" __global__ void never_ends(ROWS_SCALED) {
    while (*reinterpret_cast<const volatile float*>(scale) < 1e30f) {}
}

extern "C" __global__ void traps(ROWS_SCALED) { __trap(); }
