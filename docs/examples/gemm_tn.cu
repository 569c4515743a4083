// C = A B^T with CuTe: FP16 in, FP32 out, a tile of C for each CTA of four warps.
#include <cuda_fp16.h>

#include <cute/tensor.hpp>

using namespace cute;

// Rows of TILE_K halves, as they come or with 16-byte pieces of eight rows exchanged.
template <int ROWS, int TILE_K, bool SWIZZLED>
__device__ auto stage_layout() {
    auto plain = Layout<Shape<Int<ROWS>, Int<TILE_K>>, Stride<Int<TILE_K>, _1>>{};
    if constexpr (SWIZZLED) {
        return composition(Swizzle<2, 3, 3>{}, plain);
    } else {
        return plain;
    }
}

template <int TILE_M, int TILE_N, int TILE_K, bool SWIZZLED>
__global__ void __launch_bounds__(128)
    gemm_tn(const __half* a, const __half* b, float* c, int M, int N, int K) {
    auto all_a = make_tensor(make_gmem_ptr(reinterpret_cast<const half_t*>(a)), make_shape(M, K),
                             make_stride(K, _1{}));
    auto all_b = make_tensor(make_gmem_ptr(reinterpret_cast<const half_t*>(b)), make_shape(N, K),
                             make_stride(K, _1{}));
    auto all_c = make_tensor(make_gmem_ptr(c), make_shape(M, N), make_stride(N, _1{}));

    auto tiler = Shape<Int<TILE_M>, Int<TILE_N>, Int<TILE_K>>{};
    auto place = make_coord(blockIdx.x, blockIdx.y, _);
    auto tiles_a = local_tile(all_a, tiler, place, Step<_1, X, _1>{});
    auto tiles_b = local_tile(all_b, tiler, place, Step<X, _1, _1>{});
    auto tile_c = local_tile(all_c, tiler, place, Step<_1, _1, X>{});

    __shared__ alignas(16) half_t words_a[TILE_M * TILE_K];
    __shared__ alignas(16) half_t words_b[TILE_N * TILE_K];
    auto stage_a = make_tensor(make_smem_ptr(words_a), stage_layout<TILE_M, TILE_K, SWIZZLED>());
    auto stage_b = make_tensor(make_smem_ptr(words_b), stage_layout<TILE_N, TILE_K, SWIZZLED>());

    auto by_thread = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, half_t>{},
                                     Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
    auto mine = by_thread.get_slice(threadIdx.x);
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{});
    auto share = mma.get_slice(threadIdx.x);
    auto from_a = share.partition_A(stage_a);
    auto from_b = share.partition_B(stage_b);
    auto to_c = share.partition_C(tile_c);
    auto sums = share.make_fragment_C(to_c);
    clear(sums);

    for (int step = 0; step < size<2>(tiles_a); ++step) {
        copy(by_thread, mine.partition_S(tiles_a(_, _, step)), mine.partition_D(stage_a));
        copy(by_thread, mine.partition_S(tiles_b(_, _, step)), mine.partition_D(stage_b));
        __syncthreads();
        gemm(mma, from_a, from_b, sums);
        __syncthreads();
    }
    copy(sums, to_c);
}
