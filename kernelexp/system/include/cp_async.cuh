// Copies of a thread's own from global to shared memory: PTX ISA 9.1, section 9.7.9.25.3.
#pragma once

#include <cstdint>

namespace kx {

// 16 bytes, past L1, in this thread's open group.
__device__ __forceinline__ void cp_async_cg(uint32_t destination, const void* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(destination), "l"(source)
               : "memory");
}

// Closes this thread's group.
__device__ __forceinline__ void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until all but PENDING of this thread's groups have landed.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

}  // namespace kx
