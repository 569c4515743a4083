// mma.sp and wgmma.mma_async.sp: A is [M][K/2], the elements that are stored; B is [N][K].
//
// Every lane brings a word of metadata of its own: which lanes' words count, and for which elements,
// is what the programs show.

#include <cstdint>

// mma.sp: a row of A is 16 or 32 bytes, one of B twice that, for every type. Lane 4g + q holds words
// q, q + 4, ... of its rows.
template <int WORDS>
__device__ void load(const uint32_t* a, const uint32_t* b, uint32_t (&fa)[4], uint32_t (&fb)[4]) {
    const int g = threadIdx.x / 4, q = threadIdx.x % 4;
    for (int i = 0; i < WORDS / 4; ++i) {
        fa[2 * i] = a[g * WORDS + q + 4 * i];
        fa[2 * i + 1] = a[(g + 8) * WORDS + q + 4 * i];
    }
    for (int i = 0; i < WORDS / 2; ++i) fb[i] = b[g * 2 * WORDS + q + 4 * i];
}

#define SPARSE(NAME, WORDS, VARIANT, SHAPE_AND_TYPES, SELECTOR, INSTRUCTION)                        \
    extern "C" __global__ void NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c,        \
                                    const uint32_t* meta, uint32_t* d) {                            \
        uint32_t fa[4], fb[4], fd[4];                                                               \
        load<WORDS>(a + blockIdx.x * 16 * WORDS, b + blockIdx.x * 16 * WORDS, fa, fb);              \
        const uint32_t e = meta[blockIdx.x * 32 + threadIdx.x];                                     \
        const int base = blockIdx.x * 128 + (threadIdx.x / 4) * 8 + (threadIdx.x % 4) * 2;          \
        for (int i = 0; i < 4; ++i) fd[i] = c[base + (i / 2) * 64 + i % 2];                         \
        INSTRUCTION("mma." VARIANT ".sync.aligned." SHAPE_AND_TYPES, SELECTOR)                      \
        for (int i = 0; i < 4; ++i) d[base + (i / 2) * 64 + i % 2] = fd[i];                         \
    }

#define LONG(OPCODE, SELECTOR)                                                                      \
    asm volatile(OPCODE " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, "      \
                 SELECTOR ";"                                                                       \
                 : "+r"(fd[0]), "+r"(fd[1]), "+r"(fd[2]), "+r"(fd[3])                               \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]),          \
                   "r"(fb[2]), "r"(fb[3]), "r"(e));

#define SHORT(OPCODE, SELECTOR)                                                                     \
    asm volatile(OPCODE " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, " SELECTOR ";"        \
                 : "+r"(fd[0]), "+r"(fd[1]), "+r"(fd[2]), "+r"(fd[3])                               \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fb[0]), "r"(fb[1]), "r"(e));

// C and D of 16 bits: a register holds two neighbouring columns.
#define HALF(NAME, VARIANT, SHAPE_AND_TYPES, SELECTOR)                                              \
    extern "C" __global__ void NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c,        \
                                    const uint32_t* meta, uint32_t* d) {                            \
        uint32_t fa[4], fb[4], fd[2];                                                               \
        load<8>(a + blockIdx.x * 128, b + blockIdx.x * 128, fa, fb);                                \
        const uint32_t e = meta[blockIdx.x * 32 + threadIdx.x];                                     \
        const int base = blockIdx.x * 64 + (threadIdx.x / 4) * 4 + threadIdx.x % 4;                 \
        for (int i = 0; i < 2; ++i) fd[i] = c[base + i * 32];                                       \
        asm volatile("mma." VARIANT ".sync.aligned." SHAPE_AND_TYPES                                \
                     " {%0,%1}, {%2,%3,%4,%5}, {%6,%7,%8,%9}, {%0,%1}, %10, " SELECTOR ";"          \
                     : "+r"(fd[0]), "+r"(fd[1])                                                     \
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]),      \
                       "r"(fb[2]), "r"(fb[3]), "r"(e));                                             \
        for (int i = 0; i < 2; ++i) d[base + i * 32] = fd[i];                                       \
    }

#define ORDERED "sp::ordered_metadata"

SPARSE(sparse_f16, 8, ORDERED, "m16n8k32.row.col.f32.f16.f16.f32", "0", LONG)
SPARSE(sparse_bf16, 8, ORDERED, "m16n8k32.row.col.f32.bf16.bf16.f32", "1", LONG)
SPARSE(sparse_tf32, 8, ORDERED, "m16n8k16.row.col.f32.tf32.tf32.f32", "0", LONG)
SPARSE(sparse_tf32_upper, 8, ORDERED, "m16n8k16.row.col.f32.tf32.tf32.f32", "1", LONG)
SPARSE(sparse_e4m3, 8, ORDERED, "m16n8k64.row.col.f32.e4m3.e4m3.f32", "0", LONG)
SPARSE(sparse_e5m2_e4m3, 8, ORDERED, "m16n8k64.row.col.f32.e5m2.e4m3.f32", "0", LONG)
SPARSE(sparse_s8, 8, ORDERED, "m16n8k64.row.col.s32.s8.s8.s32", "0", LONG)
SPARSE(sparse_u8_s8, 8, ORDERED, "m16n8k64.row.col.satfinite.s32.u8.s8.s32", "0", LONG)
SPARSE(sparse_f16_k16, 4, ORDERED, "m16n8k16.row.col.f32.f16.f16.f32", "0", SHORT)
SPARSE(sparse_bf16_k16, 4, ORDERED, "m16n8k16.row.col.f32.bf16.bf16.f32", "3", SHORT)
SPARSE(sparse_tf32_k8, 4, ORDERED, "m16n8k8.row.col.f32.tf32.tf32.f32", "2", SHORT)
SPARSE(sparse_s8_k32, 4, ORDERED, "m16n8k32.row.col.s32.s8.s8.s32", "0", SHORT)
SPARSE(sparse_u8_k32, 4, ORDERED, "m16n8k32.row.col.s32.u8.u8.s32", "1", SHORT)
SPARSE(sparse_s4, 8, ORDERED, "m16n8k128.row.col.s32.s4.s4.s32", "0", LONG)
SPARSE(sparse_u4_s4_k64, 4, ORDERED, "m16n8k64.row.col.s32.u4.s4.s32", "1", SHORT)
SPARSE(sparse_f16_unordered, 8, "sp", "m16n8k32.row.col.f32.f16.f16.f32", "0", LONG)
SPARSE(sparse_s8_unordered, 8, "sp", "m16n8k64.row.col.s32.s8.s8.s32", "0", LONG)
SPARSE(sparse_e4m3_unordered, 8, "sp", "m16n8k64.row.col.f32.e4m3.e4m3.f32", "0", LONG)
HALF(sparse_f16_f16, ORDERED, "m16n8k32.row.col.f16.f16.f16.f16", "0")

// wgmma: one warpgroup an item, D[64][16]. Operands lie in shared memory without swizzle: core
// matrices of 8 rows x 16 bytes, those along K 128 bytes apart (leading offset), those of the next 8
// rows one stride on. A row of A is 32 bytes, one of B 64.
constexpr int M = 64, N = 16, A_WORDS = 8, B_WORDS = 16;

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride, uint64_t mode) {
    return (address >> 4 & 0x3FFF) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 |
           mode << 62;
}

template <int WORDS>
__device__ void to_shared(uint32_t* target, const uint32_t* source, int rows) {
    for (int i = threadIdx.x; i < rows * WORDS; i += blockDim.x) {
        const int r = i / WORDS, w = i % WORDS;
        target[(r / 8) * 8 * WORDS + (w / 4) * 32 + (r % 8) * 4 + w % 4] = source[i];
    }
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

#define PREPARE()                                                              \
    __shared__ alignas(128) uint32_t sa[M * A_WORDS], sb[N * B_WORDS];         \
    to_shared<A_WORDS>(sa, a + blockIdx.x * M * A_WORDS, M);                   \
    to_shared<B_WORDS>(sb, b + blockIdx.x * N * B_WORDS, N);                   \
    operands_visible();                                                        \
    const uint32_t e = meta[blockIdx.x * 128 + threadIdx.x];                   \
    const uint64_t da = descriptor(shared_address(sa), 128, 256, 0);           \
    const uint64_t db = descriptor(shared_address(sb), 128, 512, 0);           \
    const int row = threadIdx.x / 4 % 8 + threadIdx.x / 32 * 16, q = threadIdx.x % 4;

// Register i of thread (row, q): row + 8 * (i / 2 % 2), column 8 * (i / 4) + 2q + i % 2.
#define PLACE(i) (blockIdx.x * M + row + (i) / 2 % 2 * 8) * N + (i) / 4 * 8 + 2 * q + (i) % 2

#define GROUP(NAME, SHAPE_AND_TYPES, A, B, SELECTOR, IMMEDIATES)                                    \
    extern "C" __global__ void __launch_bounds__(128) NAME(                                         \
        const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* meta,              \
        uint32_t* d) {                                                                              \
        PREPARE()                                                                                   \
        uint32_t f[8];                                                                              \
        for (int i = 0; i < 8; ++i) f[i] = c[PLACE(i)];                                             \
        wgmma_fence();                                                                              \
        asm volatile("wgmma.mma_async.sp.sync.aligned." SHAPE_AND_TYPES                             \
                     " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, %10, " SELECTOR ", " IMMEDIATES ";"       \
                     : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]),      \
                       "+r"(f[6]), "+r"(f[7])                                                       \
                     : "l"(A), "l"(B), "r"(e));                                                     \
        wgmma_wait();                                                                               \
        for (int i = 0; i < 8; ++i) d[PLACE(i)] = f[i];                                             \
        (void)da, (void)db;                                                                         \
    }

// A from registers: lane 4g + q of a warp holds words q and q + 4 of rows g and g + 8.
#define GROUP_REGISTERS(NAME, SHAPE_AND_TYPES, SELECTOR, IMMEDIATES)                                \
    extern "C" __global__ void __launch_bounds__(128) NAME(                                         \
        const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* meta,              \
        uint32_t* d) {                                                                              \
        PREPARE()                                                                                   \
        const uint32_t* mine = a + (blockIdx.x * M + row) * A_WORDS + q;                            \
        const uint32_t fa[4] = {mine[0], mine[8 * A_WORDS], mine[4], mine[8 * A_WORDS + 4]};        \
        uint32_t f[8];                                                                              \
        for (int i = 0; i < 8; ++i) f[i] = c[PLACE(i)];                                             \
        wgmma_fence();                                                                              \
        asm volatile("wgmma.mma_async.sp.sync.aligned." SHAPE_AND_TYPES                             \
                     " {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, %13, " SELECTOR ", "        \
                     IMMEDIATES ";"                                                                 \
                     : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]),      \
                       "+r"(f[6]), "+r"(f[7])                                                       \
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "l"(db), "r"(e));            \
        wgmma_wait();                                                                               \
        for (int i = 0; i < 8; ++i) d[PLACE(i)] = f[i];                                             \
        (void)da;                                                                                   \
    }

#define GROUP_HALF(NAME, SHAPE_AND_TYPES, SELECTOR, IMMEDIATES)                                     \
    extern "C" __global__ void __launch_bounds__(128) NAME(                                         \
        const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* meta,              \
        uint32_t* d) {                                                                              \
        PREPARE()                                                                                   \
        uint32_t f[4];                                                                              \
        for (int i = 0; i < 4; ++i)                                                                 \
            f[i] = c[(blockIdx.x * M + row + i % 2 * 8) * (N / 2) + i / 2 * 4 + q];                 \
        wgmma_fence();                                                                              \
        asm volatile("wgmma.mma_async.sp.sync.aligned." SHAPE_AND_TYPES                             \
                     " {%0,%1,%2,%3}, %4, %5, %6, " SELECTOR ", " IMMEDIATES ";"                    \
                     : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3])                               \
                     : "l"(da), "l"(db), "r"(e));                                                   \
        wgmma_wait();                                                                               \
        for (int i = 0; i < 4; ++i)                                                                 \
            d[(blockIdx.x * M + row + i % 2 * 8) * (N / 2) + i / 2 * 4 + q] = f[i];                 \
    }

// B given N-major: row k of 16 values, 32 bytes; core matrices of 8 k x 8 n. The next 8 n lie 128
// bytes on (stride offset), the next 8 k 256 bytes on (leading offset). A given M-major: row k of 64
// values, 128 bytes; the next 8 m lie 128 bytes on, the next 8 k 1,024.
__device__ void by_column(uint32_t* target, const uint32_t* source, int k, int words) {
    for (int i = threadIdx.x; i < k * words; i += blockDim.x) {
        const int r = i / words, w = i % words;
        target[(r / 8) * 8 * words + (w / 4) * 32 + (r % 8) * 4 + w % 4] = source[i];
    }
}

GROUP(sparsegroup_e4m3, "m64n16k64.f32.e4m3.e4m3", da, db, "0", "1, 1, 1")
GROUP(sparsegroup_e5m2_e4m3, "m64n16k64.f32.e5m2.e4m3", da, db, "0", "1, 1, 1")
GROUP(sparsegroup_bf16, "m64n16k32.f32.bf16.bf16", da, db, "0", "1, 1, 1, 0, 0")
GROUP(sparsegroup_bf16_negated, "m64n16k32.f32.bf16.bf16", da, db, "1", "1, -1, 1, 0, 0")
GROUP(sparsegroup_f16, "m64n16k32.f32.f16.f16", da, db, "1", "1, 1, 1, 0, 0")
GROUP(sparsegroup_tf32, "m64n16k16.f32.tf32.tf32", da, db, "0", "1, 1, 1")
GROUP(sparsegroup_tf32_upper, "m64n16k16.f32.tf32.tf32", da, db, "1", "1, 1, 1")
GROUP(sparsegroup_s8, "m64n16k64.s32.s8.s8", da, db, "0", "1")
GROUP(sparsegroup_u8, "m64n16k64.s32.u8.u8.satfinite", da, db, "0", "1")
GROUP(sparsegroup_bf16_unordered, "m64n16k32.f32.bf16.bf16", da, db, "0", "1, 1, 1, 0, 0")
GROUP(sparsegroup_s8_unordered, "m64n16k64.s32.s8.s8", da, db, "0", "1")
GROUP_REGISTERS(sparsegroup_e4m3_registers, "m64n16k64.f32.e4m3.e4m3", "0", "1, 1, 1")
GROUP_REGISTERS(sparsegroup_bf16_registers, "m64n16k32.f32.bf16.bf16", "1", "1, 1, 1, 0")
GROUP_REGISTERS(sparsegroup_tf32_registers, "m64n16k16.f32.tf32.tf32", "0", "1, 1, 1")
GROUP_HALF(sparsegroup_f16_f16, "m64n16k32.f16.f16.f16", "0", "1, 1, 1, 0, 0")
GROUP_HALF(sparsegroup_e4m3_f16, "m64n16k64.f16.e4m3.e4m3", "0", "1, 1, 1")

extern "C" __global__ void __launch_bounds__(128) sparsegroup_bf16_transposed(
    const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* meta, uint32_t* d) {
    PREPARE()
    __syncthreads();
    by_column(sa, a + blockIdx.x * M * A_WORDS, 16, 32);
    by_column(sb, b + blockIdx.x * N * B_WORDS, 32, 8);
    operands_visible();
    uint32_t f[8];
    for (int i = 0; i < 8; ++i) f[i] = c[PLACE(i)];
    wgmma_fence();
    asm volatile(
        "wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.bf16.bf16"
        " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, %10, 0, 1, 1, 1, 1, 1;"
        : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]), "+r"(f[6]),
          "+r"(f[7])
        : "l"(descriptor(shared_address(sa), 1024, 128, 0)),
          "l"(descriptor(shared_address(sb), 256, 128, 0)), "r"(e));
    wgmma_wait();
    for (int i = 0; i < 8; ++i) d[PLACE(i)] = f[i];
    (void)da, (void)db;
}

// A chain over K = 128 bytes of A and 256 of B, swizzled by 128 bytes: the second half of B lies in
// the next atom.
extern "C" __global__ void __launch_bounds__(128) sparsegroup_swizzle_128B(
    const uint32_t* a, const uint32_t* b, const uint32_t* meta, uint32_t* d) {
    extern __shared__ __align__(1024) uint32_t smem[];
    constexpr int WORDS = 32;
    uint32_t *sa = smem, *sb = smem + M * WORDS;
    for (int i = threadIdx.x; i < (M + 2 * N) * WORDS; i += blockDim.x) {
        const int byte = 4 * i;
        smem[(byte ^ ((byte >> 7 & 7) << 4)) / 4] = i < M * WORDS
                                                        ? a[blockIdx.x * M * WORDS + i]
                                                        : b[blockIdx.x * 2 * N * WORDS + i - M * WORDS];
    }
    operands_visible();
    const uint32_t e = meta[blockIdx.x * 128 + threadIdx.x];
    const uint64_t da = descriptor(shared_address(sa), 16, 1024, 1);
    const uint64_t db = descriptor(shared_address(sb), 16, 1024, 1);
    const int row = threadIdx.x / 4 % 8 + threadIdx.x / 32 * 16, q = threadIdx.x % 4;
    uint32_t f[8];
    for (int i = 0; i < 8; ++i) f[i] = 0x7FC00000 + threadIdx.x;
    wgmma_fence();
    for (int step = 0; step < 4; ++step) {
        const uint64_t next = db + (step / 2) * (N * 128 >> 4) + 4 * (step % 2);
        asm volatile(
            "{ .reg .pred p; setp.ne.b32 p, %11, 0;"
            " wgmma.mma_async.sp.sync.aligned.m64n16k64.f32.e4m3.e4m3"
            " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, %10, 0, p, 1, 1; }"
            : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]), "+r"(f[4]), "+r"(f[5]), "+r"(f[6]),
              "+r"(f[7])
            : "l"(da + 2 * step), "l"(next), "r"(e), "r"(step));
    }
    wgmma_wait();
    for (int i = 0; i < 8; ++i) d[PLACE(i)] = f[i];
}
