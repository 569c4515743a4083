// Copies of bytes with their states: rows of rows, each as far from the last as its pitch says.
#pragma once
#include "pointers.hpp"

namespace warpsim {

struct Side {
  const void* pointer;
  uint64_t pitch = 0;  // bytes from row to row
  uint64_t slice = 0;  // bytes from plane to plane
};

struct Extent {
  uint64_t width;  // bytes
  uint64_t height = 1, depth = 1;
};

cudaError_t copy(const char* name, Side to, Side from, Extent extent, cudaMemcpyKind kind);

cudaError_t fill(const char* name, Side to, int value, Extent extent);

}  // namespace warpsim
