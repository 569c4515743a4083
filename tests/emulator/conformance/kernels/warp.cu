// Exchanges inside a warp: shfl, vote, match, redux, elect; full, divergent and partial warps.

#include <cstdint>

__device__ int global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define SHUFFLE(MODE, SLOT)                                                                  \
    asm volatile("{ .reg .pred p; shfl.sync." MODE ".b32 %0|p, %2, %3, %4, %5;"             \
                 " selp.u32 %1, 1, 0, p; }"                                                  \
                 : "=r"(out[2 * (SLOT) * total + i]), "=r"(out[(2 * (SLOT) + 1) * total + i]) \
                 : "r"(a[i]), "r"(b[i]), "r"(control), "r"(mask));

// control[warp] holds the segment mask and clamp of the warp's shuffles.
extern "C" __global__ void shuffle(const uint32_t* a, const uint32_t* b, const uint32_t* controls,
                                   uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint32_t control = controls[i / 32], mask = 0xFFFFFFFF;
    SHUFFLE("idx", 0)
    SHUFFLE("up", 1)
    SHUFFLE("down", 2)
    SHUFFLE("bfly", 3)
}

// Every lane whose bit is set in the warp's mask takes part; sources stay inside the mask.
extern "C" __global__ void shuffle_some(const uint32_t* a, const uint32_t* b,
                                        const uint32_t* masks, uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint32_t mask = masks[i / 32], lane = threadIdx.x % 32, control = 0x1F;
    for (int slot = 0; slot < 2; ++slot) out[slot * total + i] = 0xDEAD;
    if (mask >> lane & 1) {
        // The source: the lowest set bit at or above b, else the lowest of all.
        const uint32_t above = mask & (0xFFFFFFFF << (b[i] & 31));
        const uint32_t source = __ffs(above ? above : mask) - 1;
        asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
                     : "=r"(out[i]) : "r"(a[i]), "r"(source), "r"(control), "r"(mask));
        out[total + i] = source;
    }
}

extern "C" __global__ void vote(const uint32_t* a, const uint32_t* masks, uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint32_t mask = masks[i / 32], lane = threadIdx.x % 32;
    uint32_t all = 7, any = 7, uniform = 7, ballot = 7;
    if (mask >> lane & 1) {
        const uint32_t bit = a[i] & 1;
        asm volatile(
            "{ .reg .pred p, q;\n"
            "setp.ne.u32 p, %4, 0;\n"
            "vote.sync.all.pred q, p, %5; selp.u32 %0, 1, 0, q;\n"
            "vote.sync.any.pred q, p, %5; selp.u32 %1, 1, 0, q;\n"
            "vote.sync.uni.pred q, !p, %5; selp.u32 %2, 1, 0, q;\n"
            "vote.sync.ballot.b32 %3, p, %5; }"
            : "=r"(all), "=r"(any), "=r"(uniform), "=r"(ballot) : "r"(bit), "r"(mask));
    }
    out[i] = all;
    out[total + i] = any;
    out[2 * total + i] = uniform;
    out[3 * total + i] = ballot;
}

extern "C" __global__ void match(const uint32_t* a, const uint32_t* masks, uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint32_t mask = masks[i / 32], lane = threadIdx.x % 32, value = a[i] & 3;
    uint32_t any = 7, wide = 7, all = 7, same = 7;
    if (mask >> lane & 1) {
        asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(any) : "r"(value), "r"(mask));
        asm volatile("match.any.sync.b64 %0, %1, %2;"
                     : "=r"(wide) : "l"(uint64_t(value & 1) << 40), "r"(mask));
        asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, %3; selp.u32 %1, 1, 0, p; }"
                     : "=r"(all), "=r"(same) : "r"(value >> (i / 32 % 3)), "r"(mask));
    }
    out[i] = any;
    out[total + i] = wide;
    out[2 * total + i] = all;
    out[3 * total + i] = same;
}

#define REDUX(OPERATION, SLOT)                                                      \
    asm volatile("redux.sync." OPERATION " %0, %1, %2;"                             \
                 : "=r"(out[(SLOT) * total + i]) : "r"(a[i]), "r"(mask));

extern "C" __global__ void redux(const uint32_t* a, const uint32_t* masks, uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint32_t mask = masks[i / 32], lane = threadIdx.x % 32;
    for (int slot = 0; slot < 8; ++slot) out[slot * total + i] = 0xDEAD;
    if (mask >> lane & 1) {
        REDUX("add.s32", 0)
        REDUX("min.s32", 1)
        REDUX("max.s32", 2)
        REDUX("min.u32", 3)
        REDUX("max.u32", 4)
        REDUX("and.b32", 5)
        REDUX("or.b32", 6)
        REDUX("xor.b32", 7)
    }
}

extern "C" __global__ void elect(const uint32_t* masks, uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint32_t mask = masks[i / 32], lane = threadIdx.x % 32;
    uint32_t leader = 7, chosen = 7;
    if (mask >> lane & 1) {
        asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
                     : "=r"(leader), "=r"(chosen) : "r"(mask));
    }
    out[i] = leader;
    out[total + i] = chosen;
}

// A block of 48 threads: the second warp has 16 lanes.
extern "C" __global__ void partial(const uint32_t* a, const uint32_t* b, uint32_t* out) {
    const int i = threadIdx.x, total = blockDim.x;
    const uint32_t mask = i < 32 ? 0xFFFFFFFF : 0xFFFF;
    const uint32_t lanes = i < 32 ? 31 : 15;
    uint32_t picked, crossed, ballot, sum;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;"
                 : "=r"(picked) : "r"(a[i]), "r"(b[i] & lanes), "r"(mask));
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;"
                 : "=r"(crossed) : "r"(a[i]), "r"(lanes), "r"(mask));
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
                 : "=r"(ballot) : "r"(a[i]), "r"(mask));
    asm volatile("redux.sync.add.u32 %0, %1, %2;" : "=r"(sum) : "r"(a[i]), "r"(mask));
    out[i] = picked;
    out[total + i] = crossed;
    out[2 * total + i] = ballot;
    out[3 * total + i] = sum;
}
