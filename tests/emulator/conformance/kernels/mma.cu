// mma.sync: one warp an item; fragments are loaded and stored as the PTX ISA lays them out.
//
// A is [16][K], B is [8][K] (a column of B contiguous), C and D are [16][8]. A row of A or B is 32
// bytes for every type here (k16 of 16 bits, k32 of 8, k8 of 32), and lane 4g + q holds words q and
// q + 4 of its rows, so all types share the loads. k8 of 16 bits has rows of 16 bytes.

#include <cstdint>

template <int WORDS>
__device__ void load(const uint32_t* a, const uint32_t* b, uint32_t (&fa)[4], uint32_t (&fb)[2]) {
    const int g = threadIdx.x / 4, q = threadIdx.x % 4;
    fa[0] = a[g * WORDS + q];
    fa[1] = a[(g + 8) * WORDS + q];
    fb[0] = b[g * WORDS + q];
    if (WORDS == 8) {
        fa[2] = a[g * WORDS + q + 4];
        fa[3] = a[(g + 8) * WORDS + q + 4];
        fb[1] = b[g * WORDS + q + 4];
    }
}

#define WIDE(NAME, SHAPE_AND_TYPES)                                                             \
    extern "C" __global__ void NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c,    \
                                    uint32_t* d) {                                              \
        uint32_t fa[4], fb[2], fd[4];                                                           \
        load<8>(a + blockIdx.x * 128, b + blockIdx.x * 64, fa, fb);                             \
        const int base = blockIdx.x * 128 + (threadIdx.x / 4) * 8 + (threadIdx.x % 4) * 2;      \
        for (int i = 0; i < 4; ++i) fd[i] = c[base + (i / 2) * 64 + i % 2];                     \
        asm volatile("mma.sync.aligned." SHAPE_AND_TYPES                                        \
                     " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                   \
                     : "+r"(fd[0]), "+r"(fd[1]), "+r"(fd[2]), "+r"(fd[3])                       \
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1])); \
        for (int i = 0; i < 4; ++i) d[base + (i / 2) * 64 + i % 2] = fd[i];                     \
    }

#define NARROW(NAME, SHAPE_AND_TYPES)                                                           \
    extern "C" __global__ void NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c,    \
                                    uint32_t* d) {                                              \
        uint32_t fa[4], fb[2], fd[4];                                                           \
        load<4>(a + blockIdx.x * 64, b + blockIdx.x * 32, fa, fb);                              \
        const int base = blockIdx.x * 128 + (threadIdx.x / 4) * 8 + (threadIdx.x % 4) * 2;      \
        for (int i = 0; i < 4; ++i) fd[i] = c[base + (i / 2) * 64 + i % 2];                     \
        asm volatile("mma.sync.aligned." SHAPE_AND_TYPES                                        \
                     " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                            \
                     : "+r"(fd[0]), "+r"(fd[1]), "+r"(fd[2]), "+r"(fd[3])                       \
                     : "r"(fa[0]), "r"(fa[1]), "r"(fb[0]));                                     \
        for (int i = 0; i < 4; ++i) d[base + (i / 2) * 64 + i % 2] = fd[i];                     \
    }

// C and D of 16 bits: a register holds two neighbouring columns.
#define HALF(NAME, SHAPE_AND_TYPES)                                                             \
    extern "C" __global__ void NAME(const uint32_t* a, const uint32_t* b, const uint32_t* c,    \
                                    uint32_t* d) {                                              \
        uint32_t fa[4], fb[2], fd[2];                                                           \
        load<8>(a + blockIdx.x * 128, b + blockIdx.x * 64, fa, fb);                             \
        const int base = blockIdx.x * 64 + (threadIdx.x / 4) * 4 + threadIdx.x % 4;             \
        for (int i = 0; i < 2; ++i) fd[i] = c[base + i * 32];                                   \
        asm volatile("mma.sync.aligned." SHAPE_AND_TYPES                                        \
                     " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"                               \
                     : "+r"(fd[0]), "+r"(fd[1])                                                 \
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1])); \
        for (int i = 0; i < 2; ++i) d[base + i * 32] = fd[i];                                   \
    }

WIDE(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
WIDE(mma_f16, "m16n8k16.row.col.f32.f16.f16.f32")
WIDE(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
WIDE(mma_e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
WIDE(mma_e5m2, "m16n8k32.row.col.f32.e5m2.e5m2.f32")
WIDE(mma_e4m3_e5m2, "m16n8k32.row.col.f32.e4m3.e5m2.f32")
WIDE(mma_s8, "m16n8k32.row.col.s32.s8.s8.s32")
WIDE(mma_u8, "m16n8k32.row.col.s32.u8.u8.s32")
WIDE(mma_s8_u8, "m16n8k32.row.col.satfinite.s32.s8.u8.s32")
NARROW(mma_bf16_k8, "m16n8k8.row.col.f32.bf16.bf16.f32")
NARROW(mma_f16_k8, "m16n8k8.row.col.f32.f16.f16.f32")
HALF(mma_f16_f16, "m16n8k16.row.col.f16.f16.f16.f16")
HALF(mma_e4m3_f16, "m16n8k32.row.col.f16.e4m3.e4m3.f16")
