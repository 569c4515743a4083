// c = x * scale + beta * c, row by row, in one launch or in two; and kernels that get it wrong.
constexpr int COLS = 1024;
constexpr int SPLITS = 4;

#define MATRICES const float *x, const float *scale, float *c, unsigned *tickets, float beta

__device__ inline void add_row(const float* x, const float* scale, float* c, float beta, int row) {
    for (int col = threadIdx.x; col < COLS; col += blockDim.x) {
        const size_t at = row * size_t(COLS) + col;
        c[at] = x[at] * scale[col] + beta * c[at];
    }
}

// Rows are drawn as tickets, which only works from 0 on.
__device__ inline int draw(unsigned* tickets) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
    __syncthreads();
    return ticket;
}

extern "C" __global__ void accumulates(MATRICES) {
    const int row = draw(tickets);
    if (row < gridDim.x) add_row(x, scale, c, beta, row);
}

// The same in two launches: c = beta * c, and then c = x * scale + c.
extern "C" __global__ void scales(float* c, float beta) {
    for (int col = threadIdx.x; col < COLS; col += blockDim.x)
        c[blockIdx.x * size_t(COLS) + col] *= beta;
}

extern "C" __global__ void adds(MATRICES) {
    const int row = draw(tickets);
    if (row < gridDim.x) add_row(x, scale, c, 1.0f, row);
}

extern "C" __global__ void forgets_what_it_was(MATRICES) {
    const int row = draw(tickets);
    if (row < gridDim.x) add_row(x, scale, c, 0.0f, row);
}

extern "C" __global__ void adds_twice(MATRICES) {
    const int row = draw(tickets);
    if (row >= gridDim.x) return;
    add_row(x, scale, c, beta, row);
    if (row == 7) add_row(x, scale, c, beta, row);
}

extern "C" __global__ void writes_past_its_tickets(MATRICES) {
    const int row = draw(tickets);
    if (row < gridDim.x) add_row(x, scale, c, beta, row);
    if (row == 0 && threadIdx.x == 0) tickets[1] = 1;
}
