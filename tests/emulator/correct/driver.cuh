// What all kernels here share: one signature, so that one launch suits them all.
#pragma once

#define KERNEL(name) \
  extern "C" __global__ void name(unsigned *out, const unsigned *in, unsigned *scratch)
#define KERNEL_OF(attributes, name)             \
  extern "C" __global__ void attributes name(unsigned *out, const unsigned *in, unsigned *scratch)

constexpr unsigned ALL = 0xffffffff;

__device__ inline unsigned lane() { return threadIdx.x % 32; }
__device__ inline unsigned warp() { return threadIdx.x / 32; }
__device__ inline unsigned thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline unsigned shared_address(const void *p) { return __cvta_generic_to_shared(p); }
