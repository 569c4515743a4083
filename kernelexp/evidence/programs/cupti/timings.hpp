// How long kernels took on the device, by CUPTI's records of activity.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace captor {

// Empty, or why there are no times.
std::string start_timing();

// A launch that is captured: it runs after a pause, and does not count among the others.
void set_apart(uint32_t correlation);

// A kernel takes as long as its grid and its block let it.
struct Shape {
  std::string symbol;
  std::array<int, 3> grid, block;
  bool operator<(const Shape& other) const {
    return std::tie(symbol, grid, block) < std::tie(other.symbol, other.grid, other.block);
  }
};

struct Timings {
  std::map<Shape, std::vector<uint64_t>> nanoseconds;        // in the order of records
  std::map<uint32_t, uint64_t> apart;                        // by correlation
};

// All that has ended.
Timings finish_timing();

}  // namespace captor
