// Streams of executed warps, and the units that the model of time sends them through:
// warpsim/timing.
#pragma once
#include <cstdint>
#include <vector>

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

// What an instruction leaves in a stream, and which units it goes through. timing/opcodes.py has
// the same names in the same order.
enum class Kind : int32_t {
  kSkip,        // not an instruction of the card
  kFixed,       // a pipe of its sub-core; the encoded stall says when its result is there
  kQueued,      // the same through the queue; `extra`: cycles of the data stage
  kConstant,    // of constants; `extra`: lanes name them, figures: how many
  kShared,      // figures: wavefronts; -1: no lane takes part; `extra`: words of a lane
  kLoad,        // figures: lines, then (line, sectors of it) each
  kStore,
  kAtomic,      // lines, then (line, sectors of it, turns, whole ones) each; `latency`: cycles of
                // a turn in an SM; `interval`: of a whole turn in L2; `extra`: of floats
  kCopy,        // LDGSTS: wavefronts, then as kLoad
  kSync,        // figures: count, tokens signalled; count, tokens waited for. Holds the warp
  kTest,        // the same; holds who waits for its scoreboard
  kArrive,      // figures: count, tokens, 0
  kBulkLoad,    // figures: bytes, array, count, tokens
  kBulkStore,   // figures: bytes, array
  kPrefetch,    // figures: array; as many bytes as its last kBulkLoad
  kCommit,      // closes a group of copies
  kGroups,      // waits until `extra` groups are pending at most
  kMatrix,      // of a warpgroup; `latency`: cycles that shared memory gives operands; `extra`:
                // closes a group
  kMatrixArrive,  // the products that follow wait for this of all four warps
  kMatrixWait,  // waits until `extra` groups are pending at most
  kProduct,     // tcgen05.mma; figures: rows, columns of D, 0 if none; `extra`: ProductForm
  kSignal,      // tcgen05.commit; figures: count, tokens signalled
  kTensorMemory,  // a warp's load or store of tensor memory; `interval`: its turns
  kExit,
};

// Bits of what a tcgen05.mma says beside its shape.
enum ProductForm { kPair = 1, kFromTensorMemory = 2 };

// Why a warp did not issue; REASONS of timing/replay.py has ncu's names in the same order.
enum Reason { kSelected, kWait, kShort, kLong, kBarrier, kGmma, kPipe, kMio, kNotSelected,
              kBranching, kLg, kReasons };

struct Instruction {
  Kind kind;
  int32_t pipe;      // negative: none
  int32_t second;    // another pipe that does it too, or negative
  float interval;    // cycles that it keeps its pipe
  int32_t latency;   // cycles from issue to its result
  int32_t stall, wbar, rbar, wait;
  int32_t extra;
};

// PARAMETERS of timing/replay.py has the same names in the same order.
struct Parameters {
  double queue_depth, global_depth, queue_interval, return_interval;
  double shared_latency, constant_interval, constant_latency;
  double l1_latency, l1_lines;
  double store_extra, copy_port, request_interval, early_read;  // 0 where a chip has none
  double l2_atomic_rate, whole_turn, part_turn, float_turn, sms;
  double l2_latency, l2_rate, l2_read_interval, l2_write_rate, l2_write_interval, write_buffer;
  double dram_latency, dram_wait, dram_rate, dram_write_rate;
  double read_latency;
  double tma_interval, tma_rate, tma_latency;
  double barrier_latency, barrier_per_warp;
  double arrive_latency, test_latency, wake_latency;
  double branch, turnover, launch_interval, gmma_tail, gmma_depth, beside_gmma,
      gmma_port, l2_port;
  double product_tail, pair_tail, tmem_operand, tmem_latency;  // 0 where a chip has no tcgen05
};

struct Array {
  int64_t first, end;  // in lines
  double from_dram;    // of what L2 is asked for by bulk loads, or the first time by an SM's loads
  double prefetched;   // the same of what is prefetched
  double written;      // of what L2 is given, what DRAM gets while the launch runs
  double together;     // SMs that bulk loads of the same bytes go to
};

}  // namespace kx::timing
