// Ranges of memory that a program names: whose they are, and whether they are all in one object.
#pragma once
#include "context.hpp"
#include "memory.hpp"

namespace warpsim {

// A range of bytes as the runtime reaches it.
struct Range {
  char* bytes;
  uint8_t* states;  // null on the host
  const Allocation* allocation;  // null on the host
};

// False, and a finding of `what` (such as "cudaMemcpy reads"), for device memory that is not all in
// one allocation.
bool resolve(const void* pointer, uint64_t size, const char* what, Range& range);

// One place of the device's memory; null, and a finding, for what is none.
const Allocation* require_device(const void* pointer, const char* what);

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// `@3 (400 bytes)`: whoever shows it replaces the number by where it was made.
std::string describe(const Allocation& allocation);

}  // namespace warpsim
