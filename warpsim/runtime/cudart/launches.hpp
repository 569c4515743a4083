// Launches: checked as the driver checks them, then executed by the emulator.
#pragma once
#include "modules.hpp"

namespace warpsim {

struct Geometry {
  dim3 grid, block;
  dim3 cluster{1, 1, 1};
  uint64_t shared = 0;  // dynamic
  bool cooperative = false;
  bool early = false;  // may begin when the launch before it in the stream lets it
};

// unseen: whether only cudaGetLastError() would tell of an error.
cudaError_t launch(Kernel* kernel, const Geometry& geometry, void** arguments, cudaStream_t stream,
                   const Frames& site, bool unseen);

// CTAs of a kernel that are resident on an SM at once.
uint64_t residents(const Kernel& kernel, uint64_t threads, uint64_t shared);

}  // namespace warpsim
