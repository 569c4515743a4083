// Kernels that are right, each by another way of loading, staging, adding or launching.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "row_scale.cuh"

#define ROWS_SCALED const float *x, const float *scale, float *y, float *sums

extern "C" __global__ void plain(ROWS_SCALED) { do_row(x, scale, y, sums, blockIdx.x); }

extern "C" __global__ void vectorised(ROWS_SCALED) {
    const size_t at = blockIdx.x * (size_t)(COLS / 4) + threadIdx.x;
    const float4 v = reinterpret_cast<const float4*>(x)[at];
    const float4 s = reinterpret_cast<const float4*>(scale)[threadIdx.x];
    const float4 r = {v.x * s.x, v.y * s.y, v.z * s.z, v.w * s.w};
    reinterpret_cast<float4*>(y)[at] = r;
    const float sum = cta_sum((r.x + r.y) + (r.z + r.w));
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void rows_from_two_ends(ROWS_SCALED) {
    const int half = gridDim.x / 2;
    const int row = blockIdx.x < half ? blockIdx.x : gridDim.x - 1 - (blockIdx.x - half);
    do_row(x, scale, y, sums, row);
}

extern "C" __global__ void staged(ROWS_SCALED) {
    __shared__ float tile[COLS];
    for (int col = threadIdx.x; col < COLS; col += blockDim.x)
        tile[col] = x[blockIdx.x * (size_t)COLS + col] * scale[col];
    __syncthreads();
    float sum = 0.0f;
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        y[blockIdx.x * (size_t)COLS + col] = tile[COLS - 1 - (COLS - 1 - col)];
        sum += tile[COLS - 1 - col];
    }
    sum = cta_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// 16 rows at once in 104 KB of shared memory, more than a kernel gets without asking.
extern "C" __global__ void large_smem(ROWS_SCALED) {
    extern __shared__ float rows[];
    const size_t first = blockIdx.x * (size_t)16;
    for (int i = threadIdx.x; i < 16 * COLS; i += blockDim.x) rows[i] = x[first * COLS + i];
    __syncthreads();
    for (int row = 0; row < 16; ++row) {
        float sum = 0.0f;
        for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
            const float value = rows[row * COLS + col] * scale[col];
            y[(first + row) * COLS + col] = value;
            sum += value;
        }
        sum = cta_sum(sum);
        if (threadIdx.x == 0) sums[first + row] = sum;
    }
}

// Added in whatever order the warps come: the last bits differ from launch to launch.
extern "C" __global__ void atomics(ROWS_SCALED) {
    if (threadIdx.x == 0) sums[blockIdx.x] = 0.0f;
    __threadfence();
    __syncthreads();
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        const float value = x[blockIdx.x * (size_t)COLS + col] * scale[col];
        y[blockIdx.x * (size_t)COLS + col] = value;
        const float sum = warp_sum(value);
        if (threadIdx.x % 32 == 0) atomicAdd(&sums[blockIdx.x], sum);
    }
}

// Two CTAs a row, which add through distributed shared memory.
extern "C" __global__ void cluster(ROWS_SCALED) {
    namespace cg = cooperative_groups;
    __shared__ float mine;
    cg::cluster_group both = cg::this_cluster();
    const int row = blockIdx.x / 2, rank = both.block_rank();
    float sum = 0.0f;
    for (int col = threadIdx.x; col < COLS / 2; col += blockDim.x) {
        const int at = rank * (COLS / 2) + col;
        const float value = x[row * (size_t)COLS + at] * scale[at];
        y[row * (size_t)COLS + at] = value;
        sum += value;
    }
    sum = cta_sum(sum);
    if (threadIdx.x == 0) mine = sum;
    both.sync();
    if (rank == 0 && threadIdx.x == 0) sums[row] = mine + *both.map_shared_rank(&mine, 1);
    both.sync();
}

extern "C" __global__ void async_copies(ROWS_SCALED) {
    __shared__ float4 tile[COLS / 4];
    const float4* row = reinterpret_cast<const float4*>(x) + blockIdx.x * (size_t)(COLS / 4);
    __pipeline_memcpy_async(&tile[threadIdx.x], &row[threadIdx.x], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    float sum = 0.0f;
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        const float value = reinterpret_cast<float*>(tile)[col] * scale[col];
        y[blockIdx.x * (size_t)COLS + col] = value;
        sum += value;
    }
    sum = cta_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

struct alignas(64) TensorMap { uint64_t opaque[16]; };

// Eight rows by TMA, in four boxes of 256 columns: PTX ISA, cp.async.bulk.tensor and mbarrier.
extern "C" __global__ void tma(const __grid_constant__ TensorMap map, const float* scale, float* y,
                               float* sums) {
    __shared__ alignas(128) float boxes[4][8][256];
    __shared__ alignas(8) uint64_t full;
    const uint32_t barrier = (uint32_t)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                     "r"((uint32_t)sizeof(boxes)) : "memory");
        for (int box = 0; box < 4; ++box)
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                " [%0], [%1, {%2, %3}], [%4];" ::"r"(
                    (uint32_t)__cvta_generic_to_shared(boxes[box])),
                "l"(&map), "r"(box * 256), "r"((int)blockIdx.x * 8), "r"(barrier) : "memory");
    }
    __syncthreads();
    uint32_t done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
            " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier) : "memory");
    for (int row = 0; row < 8; ++row) {
        float sum = 0.0f;
        for (int box = 0; box < 4; ++box) {
            const int col = box * 256 + threadIdx.x;
            const float value = boxes[box][row][threadIdx.x] * scale[col];
            y[(blockIdx.x * (size_t)8 + row) * COLS + col] = value;
            sum += value;
        }
        sum = cta_sum(sum);
        if (threadIdx.x == 0) sums[blockIdx.x * 8 + row] = sum;
    }
}

// Slow, and right.
extern "C" __global__ void twice(ROWS_SCALED) {
    do_row(x, scale, y, sums, blockIdx.x);
    __syncthreads();
    do_row(x, scale, y, sums, blockIdx.x);
}

// Some CTAs start late: the launch is not over before they are.
extern "C" __global__ void late_ctas(ROWS_SCALED) {
    if (blockIdx.x % 64 == 0) __nanosleep(20000);
    do_row(x, scale, y, sums, blockIdx.x);
}

// Reads the table that problem.py's `arrange` transposed for it.
extern "C" __global__ void transposed(ROWS_SCALED) {
    float sum = 0.0f;
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        const float value = x[col * (size_t)gridDim.x + blockIdx.x] * scale[col];
        y[blockIdx.x * (size_t)COLS + col] = value;
        sum += value;
    }
    sum = cta_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
