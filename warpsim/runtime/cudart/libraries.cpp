#include "libraries.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "pointers.hpp"
#include "streams.hpp"

using namespace warpsim;

extern "C" bool __warpsim_reach(const void* pointer, uint64_t size, const char* what, char** bytes,
                                uint8_t** states) {
  Range range;
  if (!resolve(pointer, size, what, range)) return false;
  if (!range.allocation) {
    report("wrong-direction", std::string(what) + " at " + hex(address_of(pointer)) +
                                  ", which is not memory of the device.");
    return false;
  }
  *bytes = range.bytes, *states = range.states;
  return true;
}

extern "C" bool __warpsim_read(const char* what, const void* pointer, const uint8_t* states,
                               uint64_t size) {
  const uint64_t missing = std::count(states, states + size, kUnwritten);
  if (!missing) return true;
  const Allocation* found = find(address_of(pointer));
  report("uninitialised-copy", std::string(what) + " in " + describe(*found) +
                                   ", of which nobody has written all that it needs.");
  return false;
}

extern "C" void __warpsim_written(uint8_t* states, uint64_t size) {
  std::replace(states, states + size, uint8_t(kUnwritten), uint8_t(kWritten));
}

extern "C" void __warpsim_report(const char* name, const char* sentence) { report(name, sentence); }

extern "C" cudaError_t __warpsim_compute(const char* name, cudaStream_t stream,
                                         const std::function<bool()>& work) {
  return call([&] {
    static auto& known = *new std::set<std::string>;
    if (known.insert(name).second) {
      report("host-library", std::string(name) + " is computed on the CPU by a library of the "
                             "emulator's, not by NVIDIA's kernels: its results may be rounded "
                             "otherwise, and random numbers are others.");
    }
    return enqueue(stream, [work] { return work() ? cudaSuccess : cudaErrorIllegalAddress; });
  });
}
