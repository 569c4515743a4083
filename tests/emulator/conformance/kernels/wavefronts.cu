// One shared-memory instruction of one warp at given addresses, for ncu to count its wavefronts.

#include <cstdint>

#define ADDRESS()                                                                        \
    extern __shared__ __align__(1024) uint8_t smem[];                                    \
    const uint32_t lane = threadIdx.x;                                                   \
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(smem)) + where[lane]; \
    uint32_t r[4] = {lane, lane + 1, lane + 2, lane + 3};

#define ENTRY(NAME, ...)                                                                            \
    extern "C" __global__ void NAME(const uint32_t* where, uint32_t active, uint32_t* out) {        \
        ADDRESS()                                                                                   \
        if (active >> lane & 1) asm volatile(__VA_ARGS__);                                          \
        for (int k = 0; k < 4; ++k) out[lane * 4 + k] = r[k];                                       \
    }

#define OUT1 "=r"(r[0]) : "r"(at) : "memory"
#define OUT2 "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory"
#define OUT4 "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory"
#define IN1 :: "r"(at), "r"(r[0]) : "memory"
#define IN2 :: "r"(at), "r"(r[0]), "r"(r[1]) : "memory"
#define IN4 :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory"

ENTRY(load_4, "ld.shared.u32 %0, [%1];" : OUT1)
ENTRY(load_8, "ld.shared.v2.u32 {%0,%1}, [%2];" : OUT2)
ENTRY(load_16, "ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : OUT4)
ENTRY(store_4, "st.shared.u32 [%0], %1;" IN1)
ENTRY(store_8, "st.shared.v2.u32 [%0], {%1,%2};" IN2)
ENTRY(store_16, "st.shared.v4.u32 [%0], {%1,%2,%3,%4};" IN4)
ENTRY(ldmatrix_x1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : OUT1)
ENTRY(ldmatrix_x2, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : OUT2)
ENTRY(ldmatrix_x4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : OUT4)
ENTRY(ldmatrix_x4_trans, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : OUT4)
ENTRY(stmatrix_x1, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" IN1)
ENTRY(stmatrix_x2, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" IN2)
ENTRY(stmatrix_x4, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" IN4)
ENTRY(stmatrix_x4_trans, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" IN4)
