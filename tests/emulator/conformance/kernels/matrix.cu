// Warp-level matrix loads, stores and moves, and the wmma interface over them.

#include <mma.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void fill(uint32_t* smem, const uint32_t* a) {
    for (int i = threadIdx.x; i < 128; i += 32) smem[i] = a[blockIdx.x * 128 + i];
    __syncwarp();
}

// rows[lane] is the row of the 32 rows of 16 bytes that this lane's address names.
extern "C" __global__ void ldmatrix(const uint32_t* a, const uint32_t* rows, uint32_t* out) {
    __shared__ alignas(128) uint32_t smem[128];
    fill(smem, a);
    const uint32_t address = shared_address(smem) + rows[blockIdx.x * 32 + threadIdx.x] % 32 * 16;
    uint32_t r[14];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r[0]) : "r"(address) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[1]), "=r"(r[2]) : "r"(address) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]) : "r"(address) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[7]) : "r"(address) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[8]), "=r"(r[9]) : "r"(address) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]) : "r"(address) : "memory");
    for (int k = 0; k < 14; ++k) out[(blockIdx.x * 14 + k) * 32 + threadIdx.x] = r[k];
}

template <int FORM>
__device__ void stored(const uint32_t* a, uint32_t* out) {
    __shared__ alignas(128) uint32_t smem[128];
    for (int i = threadIdx.x; i < 128; i += 32) smem[i] = 0xABABABAB;
    __syncwarp();
    const uint32_t address = shared_address(smem) + (threadIdx.x * 5 % 32) * 16;
    const uint32_t* r = a + blockIdx.x * 128 + threadIdx.x * 4;
    if (FORM == 0)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                     ::"r"(address), "r"(r[0]) : "memory");
    if (FORM == 1)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};"
                     ::"r"(address), "r"(r[0]), "r"(r[1]) : "memory");
    if (FORM == 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
                     ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    if (FORM == 3)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};"
                     ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    __syncwarp();
    for (int i = threadIdx.x; i < 128; i += 32) out[blockIdx.x * 128 + i] = smem[i];
}

extern "C" __global__ void stmatrix_x1(const uint32_t* a, uint32_t* out) { stored<0>(a, out); }
extern "C" __global__ void stmatrix_x2(const uint32_t* a, uint32_t* out) { stored<1>(a, out); }
extern "C" __global__ void stmatrix_x4(const uint32_t* a, uint32_t* out) { stored<2>(a, out); }
extern "C" __global__ void stmatrix_x4_trans(const uint32_t* a, uint32_t* out) { stored<3>(a, out); }

extern "C" __global__ void movmatrix(const uint32_t* a, uint32_t* out) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out[i]) : "r"(a[i]));
}

using namespace nvcuda;

template <int M, int N, class Value, class Sum, class LayoutB>
__device__ void product(const Value* a, const Value* b, const Sum* c, Sum* d) {
    constexpr int K = 16, LDB = std::is_same_v<LayoutB, wmma::row_major> ? N : K;
    __shared__ alignas(32) Value sa[M * K], sb[K * N];
    __shared__ alignas(32) Sum sc[M * N];
    for (int i = threadIdx.x; i < M * K; i += 32) sa[i] = a[blockIdx.x * M * K + i];
    for (int i = threadIdx.x; i < K * N; i += 32) sb[i] = b[blockIdx.x * K * N + i];
    for (int i = threadIdx.x; i < M * N; i += 32) sc[i] = c[blockIdx.x * M * N + i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, M, N, K, Value, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, Value, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
    wmma::load_matrix_sync(fa, sa, K);
    wmma::load_matrix_sync(fb, sb, LDB);
    wmma::load_matrix_sync(fc, sc, N, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(sc, fc, N, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < M * N; i += 32) d[blockIdx.x * M * N + i] = sc[i];
}

extern "C" __global__ void wmma_f16_row(const half* a, const half* b, const float* c, float* d) {
    product<16, 16, half, float, wmma::row_major>(a, b, c, d);
}
extern "C" __global__ void wmma_f16_col(const half* a, const half* b, const float* c, float* d) {
    product<16, 16, half, float, wmma::col_major>(a, b, c, d);
}
extern "C" __global__ void wmma_f16_m8n32(const half* a, const half* b, const float* c, float* d) {
    product<8, 32, half, float, wmma::row_major>(a, b, c, d);
}
extern "C" __global__ void wmma_s8_m8n32(const signed char* a, const signed char* b, const int* c,
                                         int* d) {
    product<8, 32, signed char, int, wmma::col_major>(a, b, c, d);
}
extern "C" __global__ void wmma_s8_m16n16(const signed char* a, const signed char* b, const int* c,
                                          int* d) {
    product<16, 16, signed char, int, wmma::row_major>(a, b, c, d);
}
