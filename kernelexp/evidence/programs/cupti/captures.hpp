// A launch with the memory that it was given and what it left there.
#pragma once
#include <cuda.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace captor {

using Size = std::array<unsigned, 3>;

// As the program asks for it.
struct Call {
  CUfunction function = nullptr;
  Size grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  unsigned shared = 0;
  CUstream stream = nullptr;
  void** parameters = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
  std::vector<int> attributes;  // the kinds of those that it carries
};

struct Parameter {
  size_t offset = 0;
  std::string bytes;
};

struct Region {
  CUdeviceptr address = 0;
  CUdeviceptr allocation = 0;
  size_t allocated = 0;
  std::string variable;  // of its module; empty: an allocation
  std::string before, after;
  std::string first;  // what a variable holds when its module is loaded
};

struct Allocation {
  CUdeviceptr address;
  size_t size;
};

struct Captured {
  std::string symbol, previous;  // the kernel that the process launched before it
  uint64_t launch = 0, number = 0;
  uint32_t correlation = 0;
  Call call;
  std::vector<Parameter> parameters;
  std::vector<Region> regions;
  std::vector<Allocation> allocations;  // all that the program has, the oldest first
  std::string folder;
};

// Fills in parameters and memory as it is before the launch; empty, or why that can't be.
std::string capture_before(Captured& captured);

// Memory after the launch, and all of it into a folder; empty, or why that can't be.
std::string capture_after(Captured& captured);

}  // namespace captor
