// Bulk tensor copies of two dimensions: swizzles, boxes, edges; one box a CTA unless said.

#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void mbarrier_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra AGAIN;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ void load(uint32_t target, const CUtensorMap* map, int x, int y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(target), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

// Each CTA loads the box at its coordinates to `offset` and writes out the shared memory around it.
extern "C" __global__ void tma_load(const __grid_constant__ CUtensorMap map, const int* coordinates,
                                    uint32_t* out, uint32_t box_bytes, uint32_t offset) {
    extern __shared__ __align__(1024) uint32_t smem[];
    __shared__ uint64_t storage;
    const uint32_t barrier = shared_address(&storage), words = (offset + box_bytes) / 4;
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) smem[i] = 0xABABABAB;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) mbarrier_init(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(barrier, box_bytes);
        load(shared_address(smem) + offset, &map, coordinates[2 * blockIdx.x],
             coordinates[2 * blockIdx.x + 1], barrier);
    }
    wait(barrier, 0);
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        out[blockIdx.x * words + i] = smem[i];
}

// Are a box's bytes all counted, those outside the tensor too? A barrier that expects the whole box
// ends its phase, and an arrival alone ends the next one: no byte was missing or left over.
extern "C" __global__ void tma_transactions(const __grid_constant__ CUtensorMap map, uint32_t* out,
                                            int x, int y, uint32_t box_bytes) {
    extern __shared__ __align__(1024) uint32_t smem[];
    __shared__ uint64_t storage;
    if (threadIdx.x != 0) return;
    const uint32_t barrier = shared_address(&storage);
    mbarrier_init(barrier, 1);
    expect(barrier, box_bytes);
    load(shared_address(smem), &map, x, y, barrier);
    for (uint32_t phase = 0; phase < 2; ++phase) {
        uint32_t done = 0;
        for (int tries = 0; tries < 10000 && !done; ++tries) {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                         " selp.u32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
        }
        out[phase] = done;
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    }
}

// Each CTA fills a box with numbered words (its bytes swizzled as the map says) and stores it.
extern "C" __global__ void tma_store(const __grid_constant__ CUtensorMap map, const int* coordinates,
                                     uint32_t* out, uint32_t box_bytes) {
    extern __shared__ __align__(1024) uint32_t smem[];
    for (uint32_t i = threadIdx.x; i < box_bytes / 4; i += blockDim.x)
        smem[i] = (blockIdx.x + 1) << 24 | i * 0x0101;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&map), "r"(coordinates[2 * blockIdx.x]),
                       "r"(coordinates[2 * blockIdx.x + 1]), "r"(shared_address(smem)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
    (void)out;
}

extern "C" __global__ void tma_reduce_add(const __grid_constant__ CUtensorMap map, const uint32_t* a,
                                          const int* coordinates, uint32_t box_bytes) {
    extern __shared__ __align__(1024) uint32_t smem[];
    for (uint32_t i = threadIdx.x; i < box_bytes / 4; i += blockDim.x)
        smem[i] = a[blockIdx.x * box_bytes / 4 + i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"
                     " [%0, {%1, %2}], [%3];"
                     ::"l"(&map), "r"(coordinates[2 * blockIdx.x]),
                       "r"(coordinates[2 * blockIdx.x + 1]), "r"(shared_address(smem)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// The CTA of rank r sends its box to the CTAs of mask[r]; each shows what it received from all.
extern "C" __global__ void tma_multicast(const __grid_constant__ CUtensorMap map,
                                         const uint32_t* masks, uint32_t* out, uint32_t box_bytes) {
    extern __shared__ __align__(1024) uint32_t smem[];
    __shared__ uint64_t storage;
    uint32_t rank, size;
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %cluster_nctarank;" : "=r"(size));
    const uint32_t barrier = shared_address(&storage), words = box_bytes / 4 * size;
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) smem[i] = 0xABABABAB;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        uint32_t senders = 0;
        for (uint32_t r = 0; r < size; ++r) senders += masks[r] >> rank & 1;
        expect(barrier, senders * box_bytes);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
            ::"r"(shared_address(smem) + rank * box_bytes), "l"(&map), "r"(0), "r"(int(rank) * 8),
              "r"(barrier), "h"(uint16_t(masks[rank])) : "memory");
    }
    wait(barrier, 0);
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        out[blockIdx.x * words + i] = smem[i];
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
