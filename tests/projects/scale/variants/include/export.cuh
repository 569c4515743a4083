#pragma once
// A figure that the host reads from the cubin.
#define KX_EXPORT(name, value) extern "C" __device__ const unsigned kx_##name = (value)
