// y[c][r] = x[r][c] for 32-bit elements, a tile of 32 x 32 through shared memory at a time.
//
// A warp reads a row of the tile from global memory and writes it to shared memory; then it reads a
// column from shared memory and writes it to global memory as a row. The column is what LAYOUT is
// about: 32 words that lie a row apart.

#include <cstdint>

#include "export.cuh"

enum class Layout {
    plain,     // pitch 32 words: a column lies in one bank, 32 wavefronts a read
    padded,    // pitch 33 words: a column lies in 32 banks, 1 wavefront
    swizzled,  // pitch 32 words, column c of row r in place of c ^ r: 1 wavefront, no words lost
};

#ifndef KX_LAYOUT
#error "KX_LAYOUT is missing (axis `layout`, e.g. -DKX_LAYOUT=padded)"
#endif
#ifndef KX_ROWS
#error "KX_ROWS is missing (axis `rows`, e.g. -DKX_ROWS=8)"
#endif

struct Config {
    static constexpr Layout LAYOUT = Layout::KX_LAYOUT;
    static constexpr unsigned TILE = 32;
    // Warps of a CTA; each moves every ROWS-th row of the tile.
    static constexpr unsigned ROWS = KX_ROWS;
    static constexpr unsigned STEPS = TILE / ROWS;
    static constexpr unsigned PITCH = LAYOUT == Layout::padded ? TILE + 1 : TILE;
    static constexpr unsigned THREADS = TILE * ROWS;
    static_assert(TILE % ROWS == 0, "each warp moves the same number of rows");
};

KX_EXPORT(threads, Config::THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);
KX_EXPORT(tile, Config::TILE);

__device__ unsigned place(unsigned row, unsigned column) {
    if constexpr (Config::LAYOUT == Layout::swizzled) column ^= row;
    return row * Config::PITCH + column;
}

extern "C" __global__ void __launch_bounds__(Config::THREADS)
    transpose(const uint32_t* x, uint32_t* y, uint32_t rows, uint32_t columns) {
    __shared__ uint32_t tile[Config::TILE * Config::PITCH];
    const unsigned lane = threadIdx.x % Config::TILE, warp = threadIdx.x / Config::TILE;
    const unsigned first_row = blockIdx.y * Config::TILE, first_column = blockIdx.x * Config::TILE;

#pragma unroll
    for (unsigned step = 0; step < Config::STEPS; ++step) {
        const unsigned row = step * Config::ROWS + warp;
        tile[place(row, lane)] = x[size_t{first_row + row} * columns + first_column + lane];
    }
    __syncthreads();
#pragma unroll
    for (unsigned step = 0; step < Config::STEPS; ++step) {
        const unsigned column = step * Config::ROWS + warp;
        y[size_t{first_column + column} * rows + first_row + lane] = tile[place(lane, column)];
    }
}
