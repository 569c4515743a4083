// out = in transposed: square matrices of floats, 32 x 32 tiles by way of shared memory.
//
// Both sides of global memory are read and written in whole rows; the tile is written by rows and
// read by columns. KX_PITCH is the floats from one row of the tile to the next: with 32 the words of
// a column lie in one bank, with 33 in 32 of them.

constexpr int TILE = 32;
constexpr int ROWS = 8;  // of threads; each brings 4 rows of the tile

__device__ __forceinline__ float load_streaming(const float* address) {
  float value;
  asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(value) : "l"(address));
  return value;
}

extern "C" __global__ void __launch_bounds__(TILE* ROWS)
    transpose(float* __restrict__ out, const float* __restrict__ in, int n) {
  __shared__ float tile[TILE][KX_PITCH];
  const int x = blockIdx.x * TILE + threadIdx.x;
  const int y = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) {
    tile[threadIdx.y + i][threadIdx.x] = load_streaming(in + (y + i) * n + x);
  }
  __syncthreads();
  const int column = blockIdx.y * TILE + threadIdx.x;
  const int row = blockIdx.x * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) {
    out[(row + i) * n + column] = tile[threadIdx.x][threadIdx.y + i];
  }
}
