// A kernel whose work is a knob: a pair of FMAs gives back the value that it was given, so pairs can
// be added without changing the result. Every CTA does the same work, so time is linear in pairs.

constexpr int THREADS = 1024;

extern "C" __device__ const unsigned kx_threads = THREADS;

// `flip` is -1 and `sum` is 1, as arguments so that the compiler can't fold the pairs away. For x in
// [0.5, 1], 1 - x is exact (Sterbenz), so the second step restores x to the last bit.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
knob(const float4* __restrict__ x, float4* __restrict__ y, unsigned pairs, float flip, float sum) {
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    float4 v = x[i];
    // Four independent chains a thread and 64 warps an SM: the FMA pipe is full, not waited for.
    // Unrolled by 4 pairs so that the loop's own instructions are a twentieth of it.
#pragma unroll 4
    for (unsigned pair = 0; pair < pairs; ++pair) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            v.x = fmaf(v.x, flip, sum);
            v.y = fmaf(v.y, flip, sum);
            v.z = fmaf(v.z, flip, sum);
            v.w = fmaf(v.w, flip, sum);
        }
    }
    y[i] = v;
}
