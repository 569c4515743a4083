// Arrays: memory with a format and up to three extents, here row by row.
#pragma once
#include <algorithm>

#include "context.hpp"
#include "memory.hpp"

struct cudaArray {
  const warpsim::Allocation* memory;
  cudaChannelFormatDesc format;
  cudaExtent extent;  // elements; 0 of what it does not have
  unsigned flags;

  uint64_t element() const { return (format.x + format.y + format.z + format.w) / 8; }
  uint64_t pitch() const { return element() * extent.width; }
  uint64_t rows() const { return std::max<uint64_t>(extent.height, 1); }
  uint64_t planes() const { return std::max<uint64_t>(extent.depth, 1); }
};

namespace warpsim {

// Null for what is not an array, or one that was freed.
const cudaArray* find_array(cudaArray_const_t array);

}  // namespace warpsim
