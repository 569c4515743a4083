// Which launches are captured, as the command line has it, and how kernels are named.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace captor {

// A pattern of fnmatch(3), whatever the case of its letters, with the launches of a kernel that it matches: from the first-th on,
// `count` of them.
struct Wanted {
  uint64_t first = 1, count = 1;
  std::string pattern;
};

struct Range {
  uint64_t first = 1, last = 1;
};

struct Settings {
  std::string folder;  // empty: nothing was asked for
  uint64_t limit = 0;  // bytes of an allocation that are copied
  std::vector<Wanted> kernels;
  std::vector<Range> launches;  // among all launches of the process; empty: any

  bool captures() const { return !kernels.empty() || !launches.empty(); }
  // Whether any launch of the kernel may be captured.
  bool may_want(const std::string& symbol) const;
  // The patterns that it matches, by number.
  std::vector<size_t> patterns_of(const std::string& symbol) const;
  // Whether this launch is: the number-th of the kernel, the launch-th of all.
  bool wants(const std::string& symbol, uint64_t number, uint64_t launch) const;
};

const Settings& settings();

}  // namespace captor
