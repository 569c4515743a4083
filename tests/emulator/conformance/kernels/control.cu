// Branches, loops, calls and local memory: what nvcc makes of them, with lanes that disagree.

#include <cstdint>

// Each lane's own number of iterations.
extern "C" __global__ void collatz(const uint32_t* a, uint32_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t n = a[i] % 1000 + 1, steps = 0;
    while (n != 1) {
        if (n & 1) {
            n = 3 * n + 1;
        } else {
            n /= 2;
        }
        ++steps;
    }
    out[i] = steps;
}

extern "C" __global__ void nested(const int32_t* a, const int32_t* b, int32_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int32_t x = a[i], y = b[i], result = 0;
    for (int round = 0; round < 5; ++round) {
        if (x < 0) {
            if (y < 0) {
                result += 1;
                x = -(x / 2);
                continue;
            }
            result ^= y;
            if (result & 4) break;
        } else if ((x & 7) == round) {
            result -= 3;
            if (y > 1000) {
                out[i] = result;
                return;
            }
        }
        x = x / 3 + y % 17;
        y = y - (x << 1);
    }
    out[i] = result ^ x;
}

extern "C" __global__ void cases(const uint32_t* a, uint32_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t x = a[i];
    for (int round = 0; round < 4; ++round) {
        switch (x % 9) {
            case 0: x = x * 3 + 1; break;
            case 1: x ^= 0x5A5A; break;
            case 2: x = __brev(x); [[fallthrough]];
            case 3: x -= 77; break;
            case 4: x = x << 3 | x >> 29; break;
            case 5: x = __popc(x) * 1234567; break;
            case 6: x = ~x; break;
            case 7: x = x * x; break;
            default: x += 11;
        }
    }
    out[i] = x;
}

__noinline__ __device__ uint64_t mix(uint64_t a, uint32_t b, bool odd) {
    return odd ? a * 6364136223846793005ull + b : a ^ (uint64_t(b) << 17);
}

__noinline__ __device__ float twice(float x) { return mix(uint64_t(x), 3, x > 1.0f) % 97 + x; }

extern "C" __global__ void calls(const uint32_t* a, const float* b, uint64_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t state = a[i];
    for (uint32_t round = 0; round < (a[i] & 3) + 1; ++round) state = mix(state, round, state & 1);
    if (a[i] & 4) state += static_cast<uint64_t>(twice(fabsf(b[i])));
    out[i] = state;
}

// An array with an index known only at run time: local memory.
extern "C" __global__ void local_array(const uint32_t* a, uint32_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t table[24];
    for (int k = 0; k < 24; ++k) table[k] = a[i] * (k + 1);
    uint32_t at = a[i] % 24, sum = 0;
    for (int k = 0; k < 10; ++k) {
        table[at] ^= k * 0x9E3779B9u;
        sum += table[(at + k) % 24];
        at = (at * 7 + sum) % 24;
    }
    out[i] = sum;
}

struct Pair {
    uint32_t key;
    uint16_t weight;
    uint8_t tag[6];
};

__noinline__ __device__ Pair swapped(Pair p) {
    Pair q{p.key ^ 0xFFFF, uint16_t(p.weight * 3), {}};
    for (int i = 0; i < 6; ++i) q.tag[i] = p.tag[5 - i];
    return q;
}

extern "C" __global__ void structs(const uint32_t* a, uint32_t* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Pair p{a[i], uint16_t(a[i] >> 9), {}};
    for (int k = 0; k < 6; ++k) p.tag[k] = uint8_t(a[i] >> k * 3);
    const Pair q = swapped(p);
    out[i] = q.key + q.weight + (q.tag[a[i] % 6] << 20);
}

// A warp of which some lanes left, and a block that does not fill its last warp.
extern "C" __global__ void early_exit(const uint32_t* a, uint32_t* out, uint32_t count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || a[i] % 5 == 0) return;
    uint32_t x = a[i];
    for (uint32_t k = 0; k < x % 7; ++k) x = x * 5 + k;
    out[i] = x;
}

extern "C" __global__ void special_registers(uint32_t* out) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    uint32_t lane, below, at_most, above, at_least, equal;
    asm volatile("mov.u32 %0, %laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %lanemask_lt;" : "=r"(below));
    asm volatile("mov.u32 %0, %lanemask_le;" : "=r"(at_most));
    asm volatile("mov.u32 %0, %lanemask_gt;" : "=r"(above));
    asm volatile("mov.u32 %0, %lanemask_ge;" : "=r"(at_least));
    asm volatile("mov.u32 %0, %lanemask_eq;" : "=r"(equal));
    uint32_t* row = out + 16 * i;
    const uint32_t values[16] = {
        threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z,
        blockDim.x | blockDim.y << 8 | blockDim.z << 16, gridDim.x | gridDim.y << 8 | gridDim.z << 16,
        lane, below, at_most, above, at_least, equal, 0, 0};
    for (int k = 0; k < 16; ++k) row[k] = values[k];
}
