// Loads and stores of every width, through each state space, with sign and zero extension.

#include <cstdint>

__device__ int global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define LOAD(TYPE, CONSTRAINT, CTYPE, SLOT)                                                       \
    {                                                                                             \
        CTYPE value;                                                                              \
        asm volatile("ld.global" TYPE " %0, [%1];" : "=" CONSTRAINT(value)                        \
                     : "l"(bytes + 16 * i + (SLOT) % 2 * 8));                                     \
        out[(SLOT) * total + i] = static_cast<uint64_t>(value);                                   \
    }

extern "C" __global__ void load_widths(const uint8_t* bytes, uint64_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    LOAD(".u8", "r", uint32_t, 0)
    LOAD(".s8", "r", uint32_t, 1)
    LOAD(".u16", "h", uint16_t, 2)
    LOAD(".s16", "r", uint32_t, 3)
    LOAD(".u32", "r", uint32_t, 4)
    LOAD(".s32", "l", uint64_t, 5)
    LOAD(".b64", "l", uint64_t, 6)
    LOAD(".u8", "l", uint64_t, 7)
    LOAD(".s8", "l", uint64_t, 8)
    LOAD(".nc.u32", "r", uint32_t, 9)
    LOAD(".nc.L2::128B.b64", "l", uint64_t, 10)
    LOAD(".cg.u32", "r", uint32_t, 11)
    LOAD(".cs.s16", "r", uint32_t, 12)
    LOAD(".lu.u16", "r", uint32_t, 13)
    LOAD(".cv.u32", "r", uint32_t, 14)
    LOAD(".relaxed.gpu.u32", "r", uint32_t, 15)
    LOAD(".acquire.cta.u32", "r", uint32_t, 16)
    LOAD(".L1::no_allocate.u32", "r", uint32_t, 17)
}

extern "C" __global__ void load_vectors(const uint8_t* bytes, uint32_t* out) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    const uint8_t* p = bytes + 16 * i;
    uint32_t v[4];
    uint64_t w[2];
    uint16_t h[4];
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(p));
    for (int k = 0; k < 4; ++k) out[k * total + i] = v[k];
    asm volatile("ld.global.v2.u32 {%0,%1}, [%2+8];" : "=r"(v[0]), "=r"(v[1]) : "l"(p));
    asm volatile("ld.global.nc.v2.b64 {%0,%1}, [%2];" : "=l"(w[0]), "=l"(w[1]) : "l"(p));
    out[4 * total + i] = v[0] ^ v[1] << 1;
    out[5 * total + i] = static_cast<uint32_t>(w[0] >> 16 ^ w[1]);
    asm volatile("ld.global.v4.u16 {%0,%1,%2,%3}, [%4];"
                 : "=h"(h[0]), "=h"(h[1]), "=h"(h[2]), "=h"(h[3]) : "l"(p + 8));
    out[6 * total + i] = h[0] | (h[1] ^ h[2] ^ h[3]) << 16;
    asm volatile("ld.global.v2.s8 {%0,%1}, [%2+2];" : "=r"(v[0]), "=r"(v[1]) : "l"(p));
    out[7 * total + i] = v[0] + v[1];
    asm volatile("ld.global.v4.u8 {%0,%1,%2,%3}, [%4+4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(p));
    out[8 * total + i] = v[0] | v[1] << 8 | v[2] << 16 | v[3] << 24;
}

extern "C" __global__ void store_widths(const uint64_t* a, uint8_t* out) {
    const int i = global_thread();
    uint8_t* p = out + 64 * i;
    const uint32_t low = static_cast<uint32_t>(a[i]), high = static_cast<uint32_t>(a[i] >> 32);
    asm volatile("st.global.u8 [%0], %1;" ::"l"(p), "r"(low));
    asm volatile("st.global.u8 [%0+1], %1;" ::"l"(p), "l"(a[i] >> 8));
    asm volatile("st.global.u16 [%0+2], %1;" ::"l"(p), "r"(high));
    asm volatile("st.global.u32 [%0+4], %1;" ::"l"(p), "l"(a[i] >> 5));
    asm volatile("st.global.u64 [%0+8], %1;" ::"l"(p), "l"(a[i]));
    asm volatile("st.global.v4.b32 [%0+16], {%1,%2,%1,%2};" ::"l"(p), "r"(low), "r"(high));
    asm volatile("st.global.v2.b64 [%0+32], {%1,%1};" ::"l"(p), "l"(a[i]));
    asm volatile("st.global.v2.u16 [%0+48], {%1,%2};" ::"l"(p), "h"(uint16_t(low)),
                 "h"(uint16_t(high)));
    asm volatile("st.global.v4.u8 [%0+52], {%1,%2,%1,%2};" ::"l"(p), "r"(low), "r"(high));
    asm volatile("st.release.gpu.global.u32 [%0+56], %1;" ::"l"(p), "r"(high));
    asm volatile("st.volatile.global.u32 [%0+60], %1;" ::"l"(p), "r"(low));
}

// Shared memory by state space and by generic address, with a stride that conflicts.
extern "C" __global__ void shared_widths(const uint64_t* a, uint64_t* out) {
    __shared__ alignas(16) uint8_t buffer[128 * 16];
    const int i = global_thread(), total = gridDim.x * blockDim.x, t = threadIdx.x;
    const uint32_t mine = static_cast<uint32_t>(__cvta_generic_to_shared(buffer)) + t * 16;
    const uint32_t low = static_cast<uint32_t>(a[i]), high = static_cast<uint32_t>(a[i] >> 32);
    asm volatile("st.shared.v2.b32 [%0], {%1,%2};" ::"r"(mine), "r"(low), "r"(high) : "memory");
    asm volatile("st.shared.u16 [%0+8], %1;" ::"r"(mine), "h"(uint16_t(low)) : "memory");
    asm volatile("st.shared.u8 [%0+10], %1;" ::"r"(mine), "r"(high) : "memory");
    asm volatile("st.shared.u8 [%0+11], %1;" ::"r"(mine), "r"(low) : "memory");
    asm volatile("st.shared.f32 [%0+12], %1;" ::"r"(mine), "f"(__uint_as_float(high)) : "memory");
    __syncthreads();
    const int other = (t * 17 + 5) % 128;
    const uint32_t theirs = static_cast<uint32_t>(__cvta_generic_to_shared(buffer)) + other * 16;
    uint32_t v[4];
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(theirs));
    out[i] = v[0] | uint64_t(v[1]) << 32;
    out[total + i] = v[2] | uint64_t(v[3]) << 32;
    uint32_t narrow;
    asm volatile("ld.shared.s8 %0, [%1+10];" : "=r"(narrow) : "r"(theirs));
    out[2 * total + i] = narrow;
    out[3 * total + i] = *reinterpret_cast<volatile uint16_t*>(buffer + other * 16 + 8);
}

__constant__ uint32_t table[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

extern "C" __global__ void constants(const uint32_t* a, uint32_t* out, uint32_t x, int32_t y,
                                     uint64_t z, float f, double g) {
    const int i = global_thread(), total = gridDim.x * blockDim.x;
    out[i] = table[a[i] % 64] + x;
    out[total + i] = static_cast<uint32_t>(z >> (a[i] % 40)) ^ y;
    out[2 * total + i] = __float_as_uint(f * (a[i] % 100));
    out[3 * total + i] = __float_as_uint(static_cast<float>(g) + a[i] % 7);
}
