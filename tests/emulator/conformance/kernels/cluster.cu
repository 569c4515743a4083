// CTAs of one cluster: shared memory of the others, remote arrivals, cluster barriers.

#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ uint32_t mapa(uint32_t address, uint32_t rank) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

__device__ uint32_t cluster_ctarank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ uint32_t cluster_nctarank() {
    uint32_t size;
    asm volatile("mov.u32 %0, %cluster_nctarank;" : "=r"(size));
    return size;
}

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}

// Each CTA publishes a row and reads every other's; then adds to its right neighbour's counters.
extern "C" __global__ void neighbours(const uint32_t* a, uint32_t* out) {
    __shared__ alignas(16) uint32_t row[64];
    __shared__ uint32_t counter[64];
    const int t = threadIdx.x;
    const uint32_t rank = cluster_ctarank(), size = cluster_nctarank();
    row[t] = a[blockIdx.x * 64 + t];
    counter[t] = t;
    cluster_sync();
    uint32_t sum = 0;
    for (uint32_t r = 0; r < size; ++r) {
        uint32_t value;
        asm volatile("ld.shared::cluster.u32 %0, [%1];"
                     : "=r"(value) : "r"(mapa(shared_address(&row[(t + 5) % 64]), r)) : "memory");
        sum = sum * 33 + value;
    }
    const uint32_t right = mapa(shared_address(&counter[63 - t]), (rank + 1) % size);
    uint32_t before;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;"
                 : "=r"(before) : "r"(right), "r"(sum & 0xFF) : "memory");
    cluster_sync();
    out[blockIdx.x * 128 + t] = sum ^ before;
    out[blockIdx.x * 128 + 64 + t] = counter[t];
    cluster_sync();
}

// Stores into the left neighbour through a generic address, then a vector load back from here.
extern "C" __global__ void remote_store(const uint32_t* a, uint32_t* out) {
    __shared__ alignas(16) uint32_t box[64];
    const int t = threadIdx.x;
    const uint32_t rank = cluster_ctarank(), size = cluster_nctarank();
    cluster_sync();
    const uint32_t target = mapa(shared_address(&box[t]), (rank + size - 1) % size);
    uint64_t generic;
    asm volatile("cvta.shared::cluster.u64 %0, %1;" : "=l"(generic) : "l"(uint64_t(target)));
    if (t % 2) {
        asm volatile("st.shared::cluster.u32 [%0], %1;"
                     ::"r"(target), "r"(a[blockIdx.x * 64 + t]) : "memory");
    } else {
        *reinterpret_cast<volatile uint32_t*>(generic) = ~a[blockIdx.x * 64 + t];
    }
    cluster_sync();
    uint32_t v[4];
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(shared_address(&box[t / 4 * 4])));
    out[blockIdx.x * 64 + t] = v[t % 4];
}

// Every CTA arrives at rank 0's barrier; rank 0 sends bytes back with st.async.
extern "C" __global__ void remote_arrive(const uint32_t* a, uint32_t* out) {
    __shared__ uint64_t gathered, answered;
    __shared__ uint32_t inbox[16];
    __shared__ alignas(16) uint32_t answer[4];
    const uint32_t rank = cluster_ctarank(), size = cluster_nctarank();
    const uint32_t gather = shared_address(&gathered), answers = shared_address(&answered);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gather), "r"(size));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(answers));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(answers));
        asm volatile("st.shared::cluster.u32 [%0], %1;"
                     ::"r"(mapa(shared_address(&inbox[rank]), 0)), "r"(a[blockIdx.x]) : "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     ::"r"(mapa(gather, 0)) : "memory");
        if (rank == 0) {
            asm volatile("{\n.reg .pred p;\nAGAIN:\n"
                         "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n"
                         "@!p bra AGAIN;\n}" ::"r"(gather) : "memory");
            uint32_t sum = 0;
            for (uint32_t r = 0; r < size; ++r) sum = sum * 5 + inbox[r];
            for (uint32_t r = 0; r < size; ++r) {
                asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32"
                             " [%0], {%1, %2, %3, %4}, [%5];"
                             ::"r"(mapa(shared_address(answer), r)), "r"(sum), "r"(sum + r),
                               "r"(r), "r"(~sum), "r"(mapa(answers, r)) : "memory");
            }
        }
    }
    asm volatile("{\n.reg .pred p;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n"
                 "@!p bra AGAIN;\n}" ::"r"(answers) : "memory");
    out[blockIdx.x * blockDim.x + threadIdx.x] = answer[threadIdx.x % 4];
    cluster_sync();
}

// Where CTAs see each other's shared memory: what mapa gives, less this CTA's own offset.
extern "C" __global__ void windows(uint32_t* out) {
    __shared__ alignas(1024) uint32_t cell[4];
    const uint32_t size = cluster_nctarank(), own = shared_address(cell);
    cell[0] = blockIdx.x;
    if (threadIdx.x == 0) {
        uint32_t* row = out + blockIdx.x * 8;
        row[0] = own;
        for (uint32_t r = 0; r < size && r < 4; ++r) row[1 + r] = mapa(own, r);
        uint64_t generic;
        asm volatile("cvta.shared.u64 %0, %1;" : "=l"(generic) : "l"(uint64_t(own)));
        row[5] = static_cast<uint32_t>(generic);
        asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(row[6]) : "r"(row[2]));
        row[7] = cluster_ctarank();
    }
    cluster_sync();
}

extern "C" __global__ void cluster_registers(uint32_t* out) {
    uint32_t v[8];
    asm volatile("mov.u32 %0, %cluster_ctaid.x;" : "=r"(v[0]));
    asm volatile("mov.u32 %0, %cluster_ctaid.y;" : "=r"(v[1]));
    asm volatile("mov.u32 %0, %cluster_nctaid.x;" : "=r"(v[2]));
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(v[3]));
    asm volatile("mov.u32 %0, %cluster_nctarank;" : "=r"(v[4]));
    asm volatile("mov.u32 %0, %clusterid.x;" : "=r"(v[5]));
    asm volatile("mov.u32 %0, %nclusterid.x;" : "=r"(v[6]));
    asm volatile("{ .reg .pred p; mov.pred p, %is_explicit_cluster; selp.u32 %0, 1, 0, p; }"
                 : "=r"(v[7]));
    const uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x < 8) out[block * 8 + threadIdx.x] = v[threadIdx.x];
}
