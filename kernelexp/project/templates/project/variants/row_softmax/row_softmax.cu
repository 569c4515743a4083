// y[r] = softmax(x[r]): one CTA per row.
//
// The maximum and the sum of a row are each combined by a binary tree in shared memory. TREE is
// about which words a level of that tree works on.

#include <cmath>

#include "export.cuh"

enum class Tree {
    interleaved,  // thread t combines words 2 s t and 2 s t + s, for s = 1, 2, 4, ...
    sequential,   // thread t combines words t and t + s, for s = THREADS / 2, ..., 2, 1
};

constexpr Tree TREE = Tree::KX_TREE;
constexpr unsigned THREADS = KX_THREADS;
static_assert((THREADS & (THREADS - 1)) == 0, "a binary tree has a power of two of leaves");

// What the host needs to know: problem.py reads these figures from the compiled kernel.
KX_EXPORT(threads, THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);

struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// One value per thread becomes one value for all. `words` has room for THREADS of them.
template <typename Combine>
__device__ float reduce(float value, float* words, Combine combine) {
    const unsigned thread = threadIdx.x;
    words[thread] = value;
    __syncthreads();
    if constexpr (TREE == Tree::interleaved) {
        for (unsigned stride = 1; stride < THREADS; stride *= 2) {
            const unsigned word = 2 * stride * thread;
            if (word < THREADS) words[word] = combine(words[word], words[word + stride]);
            __syncthreads();
        }
    } else {
        for (unsigned stride = THREADS / 2; stride > 0; stride /= 2) {
            if (thread < stride) words[thread] = combine(words[thread], words[thread + stride]);
            __syncthreads();
        }
    }
    const float result = words[0];
    __syncthreads();  // the next reduction overwrites the words
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    row_softmax(const float* x, float* y, unsigned columns) {
    __shared__ float words[THREADS];
    const float* from = x + size_t{blockIdx.x} * columns;
    float* to = y + size_t{blockIdx.x} * columns;

    float largest = -INFINITY;
    for (unsigned c = threadIdx.x; c < columns; c += THREADS) largest = fmaxf(largest, from[c]);
    largest = reduce(largest, words, Max{});

    float sum = 0.0f;
    for (unsigned c = threadIdx.x; c < columns; c += THREADS) sum += expf(from[c] - largest);
    sum = reduce(sum, words, Sum{});

    for (unsigned c = threadIdx.x; c < columns; c += THREADS) to[c] = expf(from[c] - largest) / sum;
}
