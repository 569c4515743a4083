// Streams of executed warps, and what the model of time makes of them: warpsim/time.
#pragma once
#include <cstdint>
#include <vector>

#include "interpreter.hpp"

namespace kx::timing {

// What the stream of a warp has beside the blocks that it ran: figures of each instruction that
// is marked as having some, one after the other, in the order in which they were executed.
struct Stream {
  std::vector<int32_t> blocks;
  std::vector<int64_t> figures;
};

struct Recorder {
  std::vector<Stream> warps;
};

// time/native.py has the same names in the same order.
enum class Kind : int32_t {
  kSkip,       // not an instruction of the card
  kFixed,      // a pipe, and a latency
  kShared,     // figures: wavefronts; -1: no lane takes part
  kLoad,       // figures: lines, then (line, sectors of it) each
  kStore,
  kAtomic,
  kCopy,       // LDGSTS: wavefronts, then as kLoad
  kBarrier,    // figures: number, warps (0: all of the CTA)
  kArrive,     // the same, without waiting
  kPhase,      // figures: count, then (mbarrier, initial count or 0, arrivals, bytes expected) each
  kWait,       // figures: mbarrier, parity
  kBulkLoad,   // figures: address, bytes, key, count, then (mbarrier, bytes) each
  kBulkStore,  // figures: address, bytes, key
  kCommit,     // closes a group of copies
  kGroups,     // waits until `extra` groups are pending at most
  kMatrix,     // of a warpgroup
  kMatrixWait, // waits until `extra` groups are pending at most
  kClusterArrive,
  kClusterWait,
  kBranch,
  kExit,
  kFence,
};

struct Instruction {
  Kind kind;
  int32_t pipe;      // negative: none
  int32_t interval;  // cycles that it keeps its pipe
  int32_t latency;   // cycles from issue to its result
  int32_t stall, yield, wbar, rbar, wait;
  int32_t even, odd;  // registers read of each bank
  int32_t extra;
  int32_t extra2;
  int32_t queue;  // which of its sub-core's queues it goes through; 0: none
};

struct Block {
  int32_t last;
};

}  // namespace kx::timing
