// Figures that the source computes for its host.
//
// A kernel has no host code: what the launch needs (threads, shared memory, boxes of tensor maps)
// is computed once, in the kernel's Config, and read from the compiled object by name.
#pragma once

// A 32-bit constant of the object, kx_<name>, that stays there although no device code reads it.
#define KX_EXPORT(name, value) extern "C" __device__ const unsigned kx_##name = (value)
