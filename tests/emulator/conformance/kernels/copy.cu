// Asynchronous copies without a tensor map: cp.async, cp.async.bulk, cp.reduce.async.bulk.

#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

#define CP_ASYNC(FORM, SIZE)                                                             \
    asm volatile("cp.async." FORM ".shared.global [%0], [%1], " #SIZE ", %2;"            \
                 ::"r"(shared_address(buffer) + t * 16), "l"(from), "r"(size) : "memory");

// Each thread copies 16 bytes in one form; bytes past its own size come as zeros.
extern "C" __global__ void cp_async(const uint8_t* bytes, const uint32_t* sizes, uint8_t* out) {
    __shared__ alignas(16) uint8_t buffer[128 * 16];
    const int t = threadIdx.x;
    const uint8_t* from = bytes + (blockIdx.x * 128 + t) * 16;
    for (int k = 0; k < 16; ++k) buffer[t * 16 + k] = 0xA5;
    const uint32_t wanted = sizes[blockIdx.x * 128 + t];
    uint32_t size;
    if (blockIdx.x % 4 == 0) { size = wanted % 5; CP_ASYNC("ca", 4) }
    if (blockIdx.x % 4 == 1) { size = wanted % 9; CP_ASYNC("ca", 8) }
    if (blockIdx.x % 4 == 2) { size = wanted % 17; CP_ASYNC("ca", 16) }
    if (blockIdx.x % 4 == 3) { size = wanted % 17; CP_ASYNC("cg", 16) }
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    for (int k = 0; k < 16; ++k) out[(blockIdx.x * 128 + t) * 16 + k] = buffer[t * 16 + k];
}

// Groups in flight: wait_group 1 leaves the newest pending, wait_all none; a neighbour reads.
extern "C" __global__ void cp_async_groups(const uint32_t* a, uint32_t* out, uint32_t count) {
    __shared__ alignas(16) uint32_t buffer[2][64];
    const int t = threadIdx.x;
    uint32_t sum = 0;
    for (uint32_t k = 0; k <= count; ++k) {
        if (k < count) {
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                         ::"r"(shared_address(&buffer[k % 2][t])), "l"(a + k * 64 + t) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (k == 0) continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        sum = sum * 7 + buffer[(k - 1) % 2][(t + 13) % 64];
        __syncthreads();
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[t] = sum;
}

// cp.async tracked by an mbarrier.
extern "C" __global__ void cp_async_mbarrier(const uint32_t* a, uint32_t* out) {
    __shared__ alignas(16) uint32_t buffer[64];
    __shared__ uint64_t barrier;
    const int t = threadIdx.x;
    const uint32_t address = shared_address(&barrier);
    if (t == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address) : "memory");
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 ::"r"(shared_address(&buffer[t])), "l"(a + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address) : "memory");
    asm volatile("{\n.reg .pred p;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                 "@!p bra AGAIN;\n}" ::"r"(address) : "memory");
    out[t] = buffer[63 - t] + 1;
}

// A bulk copy in, changed by ordinary stores, and a bulk copy out.
extern "C" __global__ void bulk(const uint32_t* a, uint32_t* out, uint32_t bytes) {
    extern __shared__ __align__(128) uint32_t buffer[];
    __shared__ uint64_t barrier;
    const uint32_t address = shared_address(&barrier), words = bytes / 4;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(address), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], %2, [%3];"
                     ::"r"(shared_address(buffer)), "l"(a + blockIdx.x * words), "r"(bytes),
                       "r"(address) : "memory");
    }
    asm volatile("{\n.reg .pred p;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                 "@!p bra AGAIN;\n}" ::"r"(address) : "memory");
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) buffer[i] = buffer[i] * 3 + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     ::"l"(out + blockIdx.x * words), "r"(shared_address(buffer)), "r"(bytes)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

#define REDUCE(NAME, FORM)                                                                       \
    extern "C" __global__ void NAME(const uint32_t* a, uint32_t* out) {                          \
        __shared__ alignas(128) uint32_t buffer[128];                                            \
        buffer[threadIdx.x] = a[blockIdx.x * 128 + threadIdx.x];                                 \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                             \
        __syncthreads();                                                                         \
        if (threadIdx.x == 0) {                                                                  \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." FORM              \
                         " [%0], [%1], 512;"                                                     \
                         ::"l"(out + blockIdx.x * 128), "r"(shared_address(buffer)) : "memory"); \
            asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"         \
                         ::: "memory");                                                          \
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");                            \
        }                                                                                        \
    }

REDUCE(bulk_add_u32, "add.u32")
REDUCE(bulk_min_s32, "min.s32")
REDUCE(bulk_max_u32, "max.u32")
REDUCE(bulk_xor_b32, "xor.b32")
REDUCE(bulk_add_f16, "add.noftz.f16")
REDUCE(bulk_add_bf16, "add.noftz.bf16")
REDUCE(bulk_add_f32, "add.f32")
