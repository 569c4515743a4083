// Barriers inside a CTA: named ones, reductions over them, and mbarriers with their phases.

#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void mbarrier_init(uint64_t* barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 ::"r"(shared_address(barrier)) : "memory");
}

__device__ uint32_t mbarrier_test_wait_parity(uint64_t* barrier, uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    return done;
}

__device__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n.reg .pred p;\nAGAIN:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(shared_address(barrier)), "r"(parity)
        : "memory");
}

// Two warps write, two read; the writers arrive without waiting.
extern "C" __global__ void named_barriers(const uint32_t* a, uint32_t* out) {
    __shared__ uint32_t buffer[64];
    const int t = threadIdx.x, base = blockIdx.x * 128;
    for (int round = 0; round < 3; ++round) {
        if (t < 64) {
            buffer[t] = a[base + t] + round * a[base + 64 + t];
            asm volatile("bar.arrive 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[(round * gridDim.x + blockIdx.x) * 64 + t - 64] = buffer[127 - t];
            asm volatile("barrier.sync 2, 128;" ::: "memory");
        }
    }
}

extern "C" __global__ void barrier_reductions(const uint32_t* a, uint32_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, total = gridDim.x * blockDim.x;
    uint32_t count, all, any;
    asm volatile(
        "{ .reg .pred p, q;\nsetp.gt.s32 p, %3, 0;\n"
        "bar.red.popc.u32 %0, 0, p;\n"
        "bar.red.and.pred q, 0, p; selp.u32 %1, 1, 0, q;\n"
        "bar.red.or.pred q, 0, !p; selp.u32 %2, 1, 0, q; }"
        : "=r"(count), "=r"(all), "=r"(any) : "r"(a[i]));
    out[i] = count;
    out[total + i] = all;
    out[2 * total + i] = any;
}

// A ring of two stages: warp 0 produces, warps 1 and 2 consume every stage.
extern "C" __global__ void mbarrier_ring(const uint32_t* a, uint32_t* out, uint32_t rounds) {
    __shared__ uint64_t full[2], empty[2];
    __shared__ uint32_t stage[2][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            mbarrier_init(&full[s], 32);
            mbarrier_init(&empty[s], 2);
        }
    }
    __syncthreads();
    uint32_t sum = 0;
    for (uint32_t k = 0; k < rounds; ++k) {
        const uint32_t s = k % 2, phase = k / 2 % 2;
        if (warp == 0) {
            mbarrier_wait(&empty[s], phase ^ 1);
            stage[s][lane] = a[k * 32 + lane] * (k + 1);
            mbarrier_arrive(&full[s]);
        } else {
            mbarrier_wait(&full[s], phase);
            sum = sum * 31 + stage[s][(lane + warp) % 32];
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[s]);
        }
    }
    out[threadIdx.x] = sum;
}

// What one thread sees of a barrier's phase at points that no other thread can change.
extern "C" __global__ void mbarrier_states(uint32_t* out) {
    __shared__ uint64_t barrier[4];
    if (threadIdx.x != 0) return;
    int n = 0;
    const uint32_t address = shared_address(&barrier[0]);
    mbarrier_init(&barrier[0], 3);
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 0);
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 1);
    uint64_t state;
    uint32_t pending;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(address));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[n++] = pending;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(address));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[n++] = pending;
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 0);
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 1);
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(address), "l"(state));
    out[n++] = done;
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 1;"
                 : "=l"(state) : "r"(address));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[n++] = pending;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2;"
                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(address), "l"(state));
    out[n++] = done;
    // Dropping one: two arrivals a phase from the next on.
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(address));
    mbarrier_arrive(&barrier[0]);
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 1);
    mbarrier_arrive(&barrier[0]);
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 0);
    mbarrier_arrive(&barrier[0]);
    out[n++] = mbarrier_test_wait_parity(&barrier[0], 0);
    // Transactions: the phase ends with the last arrival and the last byte.
    const uint32_t other = shared_address(&barrier[1]);
    mbarrier_init(&barrier[1], 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 48;" ::"r"(other));
    out[n++] = mbarrier_test_wait_parity(&barrier[1], 0);
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%0], 16;" ::"r"(other));
    out[n++] = mbarrier_test_wait_parity(&barrier[1], 0);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 8;" ::"r"(other));
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%0], 40;" ::"r"(other));
    out[n++] = mbarrier_test_wait_parity(&barrier[1], 0);
    out[n++] = mbarrier_test_wait_parity(&barrier[1], 1);
    // Bytes may arrive before they are expected while an arrival is pending.
    mbarrier_init(&barrier[2], 1);
    const uint32_t early = shared_address(&barrier[2]);
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%0], 64;" ::"r"(early));
    out[n++] = mbarrier_test_wait_parity(&barrier[2], 0);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 64;" ::"r"(early));
    out[n++] = mbarrier_test_wait_parity(&barrier[2], 0);
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(early));
    mbarrier_init(&barrier[2], 7);
    out[n++] = mbarrier_test_wait_parity(&barrier[2], 1);
    out[n] = n;
}

// A register cap at entry, then one role a warpgroup: fewer registers for one, more for the other.
extern "C" __global__ void __launch_bounds__(256, 1) register_roles(const uint32_t* a, uint32_t* out) {
    __shared__ uint32_t buffer[128];
    const int t = threadIdx.x;
    if (t < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        buffer[t] = a[t] * 3;
        asm volatile("bar.sync 1, 256;" ::: "memory");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        asm volatile("bar.sync 1, 256;" ::: "memory");
        out[t - 128] = buffer[255 - t] + t;
    }
}
