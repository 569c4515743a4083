// wgmma: one warpgroup an item, D[64][16] = A[64][K] * B[16][K]^T + C, K of 32 bytes.
//
// Operands lie in shared memory without swizzle: core matrices of 8 rows x 16 bytes, the two along
// K 128 bytes apart (leading offset), the next 8 rows 256 bytes on (stride offset).

#include <cstdint>

constexpr int M = 64, N = 16, ROW_WORDS = 8;

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride, uint64_t mode) {
    return (address >> 4 & 0x3FFF) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 |
           mode << 62;
}

// Word w of row r of a matrix in core-matrix order.
__device__ int core_word(int r, int w) {
    return (r / 8) * 64 + (w / 4) * 32 + (r % 8) * 4 + w % 4;
}

__device__ void to_shared(uint32_t* target, const uint32_t* source, int rows) {
    for (int i = threadIdx.x; i < rows * ROW_WORDS; i += blockDim.x)
        target[core_word(i / ROW_WORDS, i % ROW_WORDS)] = source[i];
}

__device__ void operands_visible() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

__device__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ void wgmma_wait() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

#define PREPARE()                                                        \
    __shared__ alignas(128) uint32_t sa[M * ROW_WORDS], sb[N * ROW_WORDS]; \
    to_shared(sa, a + blockIdx.x * M * ROW_WORDS, M);                    \
    to_shared(sb, b + blockIdx.x * N * ROW_WORDS, N);                    \
    operands_visible();                                                  \
    const uint64_t da = descriptor(shared_address(sa), 128, 256, 0);     \
    const uint64_t db = descriptor(shared_address(sb), 128, 256, 0);     \
    const int row = threadIdx.x / 4 % 8 + threadIdx.x / 32 * 16, q = threadIdx.x % 4;

// Register i of thread (row, q): row + 8 * (i / 2 % 2), column 8 * (i / 4) + 2q + i % 2.
#define WIDE(NAME, SHAPE_AND_TYPES, IMMEDIATES)                                                  \
    extern "C" __global__ void __launch_bounds__(128)                                            \
        NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {             \
        PREPARE()                                                                                \
        uint32_t f[8];                                                                           \
        for (int i = 0; i < 8; ++i)                                                              \
            f[i] = c[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2];    \
        wgmma_fence();                                                                           \
        asm volatile("wgmma.mma_async.sync.aligned." SHAPE_AND_TYPES                             \
                     " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, " IMMEDIATES ";"                       \
                     : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]),   \
                       "+r"(f[6]), "+r"(f[7])                                                    \
                     : "l"(da), "l"(db));                                                        \
        wgmma_wait();                                                                            \
        for (int i = 0; i < 8; ++i)                                                              \
            d[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2] = f[i];    \
    }

#define HALF(NAME, SHAPE_AND_TYPES, IMMEDIATES)                                                  \
    extern "C" __global__ void __launch_bounds__(128)                                            \
        NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {             \
        PREPARE()                                                                                \
        uint32_t f[4];                                                                           \
        for (int i = 0; i < 4; ++i)                                                              \
            f[i] = c[(blockIdx.x * M + row + i % 2 * 8) * (N / 2) + i / 2 * 4 + q];              \
        wgmma_fence();                                                                           \
        asm volatile("wgmma.mma_async.sync.aligned." SHAPE_AND_TYPES                             \
                     " {%0,%1,%2,%3}, %4, %5, " IMMEDIATES ";"                                   \
                     : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3])                            \
                     : "l"(da), "l"(db));                                                        \
        wgmma_wait();                                                                            \
        for (int i = 0; i < 4; ++i)                                                              \
            d[(blockIdx.x * M + row + i % 2 * 8) * (N / 2) + i / 2 * 4 + q] = f[i];              \
    }

WIDE(wgmma_e4m3, "m64n16k32.f32.e4m3.e4m3", "1, 1, 1")
WIDE(wgmma_e5m2, "m64n16k32.f32.e5m2.e5m2", "1, 1, 1")
WIDE(wgmma_e4m3_e5m2, "m64n16k32.f32.e4m3.e5m2", "1, 1, 1")
WIDE(wgmma_bf16, "m64n16k16.f32.bf16.bf16", "1, 1, 1, 0, 0")
WIDE(wgmma_bf16_negated, "m64n16k16.f32.bf16.bf16", "1, -1, 1, 0, 0")
WIDE(wgmma_f16, "m64n16k16.f32.f16.f16", "1, 1, 1, 0, 0")
WIDE(wgmma_tf32, "m64n16k8.f32.tf32.tf32", "1, 1, 1")
WIDE(wgmma_s8, "m64n16k32.s32.s8.s8", "1")
WIDE(wgmma_u8, "m64n16k32.s32.u8.u8", "1")
HALF(wgmma_f16_f16, "m64n16k16.f16.f16.f16", "1, 1, 1, 0, 0")
HALF(wgmma_e4m3_f16, "m64n16k32.f16.e4m3.e4m3", "1, 1, 1")

// A from registers: lane 4g + q of a warp holds words q and q + 4 of rows g and g + 8.
extern "C" __global__ void __launch_bounds__(128)
    wgmma_e4m3_registers(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {
    PREPARE()
    const uint32_t* mine = a + (blockIdx.x * M + row) * ROW_WORDS + q;
    const uint32_t fa[4] = {mine[0], mine[8 * ROW_WORDS], mine[4], mine[8 * ROW_WORDS + 4]};
    uint32_t f[8];
    for (int i = 0; i < 8; ++i)
        f[i] = c[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2];
    wgmma_fence();
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3"
        " {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, 1, 1, 1;"
        : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]), "+r"(f[6]),
          "+r"(f[7])
        : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "l"(db));
    wgmma_wait();
    for (int i = 0; i < 8; ++i)
        d[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2] = f[i];
    (void)da;
}

// A chain over K = 128 bytes with swizzled operands: rows of 128 bytes, the step of 32 bytes added
// to the descriptor's address, the first product replacing what the accumulators held.
template <int SPAN, uint64_t MODE>
__device__ void swizzled(const uint32_t* a, const uint32_t* b, uint32_t* d) {
    constexpr int WORDS = SPAN / 4, STEPS = SPAN / 32;
    extern __shared__ __align__(1024) uint32_t smem[];
    uint32_t *sa = smem, *sb = smem + M * WORDS;
    for (int i = threadIdx.x; i < (M + N) * WORDS; i += blockDim.x) {
        const uint32_t* source = i < M * WORDS ? a + blockIdx.x * M * WORDS + i
                                               : b + blockIdx.x * N * WORDS + i - M * WORDS;
        const int byte = 4 * i;
        smem[(byte ^ ((byte >> 7 & (SPAN / 16 - 1)) << 4)) / 4] = *source;
    }
    operands_visible();
    const uint64_t da = descriptor(shared_address(sa), 16, 8 * SPAN, MODE);
    const uint64_t db = descriptor(shared_address(sb), 16, 8 * SPAN, MODE);
    const int row = threadIdx.x / 4 % 8 + threadIdx.x / 32 * 16, q = threadIdx.x % 4;
    uint32_t f[8];
    for (int i = 0; i < 8; ++i) f[i] = 0x7FC00000 + threadIdx.x;
    wgmma_fence();
    for (int step = 0; step < STEPS; ++step) {
        asm volatile(
            "{ .reg .pred p; setp.ne.b32 p, %10, 0;"
            " wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3"
            " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, p, 1, 1; }"
            : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]), "+r"(f[6]),
              "+r"(f[7])
            : "l"(da + 2 * step), "l"(db + 2 * step), "r"(step));
    }
    wgmma_wait();
    for (int i = 0; i < 8; ++i)
        d[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2] = f[i];
}

extern "C" __global__ void __launch_bounds__(128)
    wgmma_swizzle_128B(const uint32_t* a, const uint32_t* b, uint32_t* d) {
    swizzled<128, 1>(a, b, d);
}

extern "C" __global__ void __launch_bounds__(128)
    wgmma_swizzle_64B(const uint32_t* a, const uint32_t* b, uint32_t* d) {
    swizzled<64, 2>(a, b, d);
}

extern "C" __global__ void __launch_bounds__(128)
    wgmma_swizzle_32B(const uint32_t* a, const uint32_t* b, uint32_t* d) {
    swizzled<32, 3>(a, b, d);
}

// B given N-major (transposed): row k of 16 values, 32 bytes; core matrices of 8 k x 8 n. The next
// 8 n lie 128 bytes on (stride offset), the next 8 k 256 bytes on (leading offset).
extern "C" __global__ void __launch_bounds__(128)
    wgmma_bf16_transposed(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {
    PREPARE()
    uint32_t f[8];
    for (int i = 0; i < 8; ++i)
        f[i] = c[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2];
    wgmma_fence();
    const uint64_t by_column = descriptor(shared_address(sb), 256, 128, 0);
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"
        " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 1;"
        : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]), "+r"(f[6]),
          "+r"(f[7])
        : "l"(da), "l"(by_column));
    wgmma_wait();
    for (int i = 0; i < 8; ++i)
        d[(blockIdx.x * M + row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * q + i % 2] = f[i];
    (void)db;
}
