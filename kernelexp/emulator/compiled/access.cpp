// Loads and stores of warps whose accesses are all as they should be: spaces.py, races.py and
// access.py in one pass. Whatever there would be to report makes a function return nonzero before
// it has changed anything, and Python does the whole access.
#include <algorithm>
#include <cstring>

#include "interpreter.hpp"
#include "memory.hpp"

// A set of warps, and where its accesses to one memory may go.
struct kx::Warps {
  const int64_t* base;   // [n]: what turns an address into an offset
  const int64_t* lower;  // [n]: the first offset that is allowed
  const int64_t* places;
  const int64_t* columns;
  int64_t rows;
  int64_t extent;  // bytes from `lower` on
};

namespace {

using kx::Array;
using kx::kBarrier;
using kx::kConstant;
using kx::kLanes;
using kx::kOutside;
using kx::kPage;
using kx::kThreadBits;
using kx::kWritten;
using kx::Memory;
using kx::Rows;
using kx::unit_at;
using kx::unordered;
using kx::Warps;

struct Access {
  const Warps& warps;
  Rows address;
  int address_bytes;  // 4 or 8
  int64_t added;      // to the address
  Rows mask;          // bytes; no data: all lanes
  int size;           // bytes of a lane
  int64_t now;
  int lanes = kLanes;  // that give an address

  int64_t thread(int64_t row, int lane) const { return warps.places[row] * kLanes + lane; }
  int64_t epoch(int64_t row, int lane) const { return now << kThreadBits | thread(row, lane); }
};

struct Lanes {
  int64_t offsets[kLanes];
  bool on[kLanes];
  int count;
};

const Rows kEvery(nullptr, 0, 0);

Rows rows_of(const Array* mask, int masked) { return masked ? Rows(mask) : kEvery; }

bool is_plain(const Array* a, int bytes, const Warps& warps) {
  return bytes >= 4 && a->dimensions == 2 && a->shape[0] == warps.rows && a->shape[1] == kLanes;
}

bool lanes_of(const Access& access, int64_t row, Lanes& lanes) {
  const Warps& warps = access.warps;
  lanes.count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.on[lane] = lane < access.lanes && (!access.mask.data || *access.mask.at(row, lane));
    if (!lanes.on[lane]) continue;
    ++lanes.count;
    const char* at = access.address.at(row, lane);
    const int64_t value =
        access.address_bytes == 8 ? kx::load<int64_t>(at) : kx::load<uint32_t>(at);
    const int64_t offset = value + access.added + warps.base[row];
    const uint64_t inside = offset - warps.lower[row];
    if (offset & (access.size - 1) || inside >= static_cast<uint64_t>(warps.extent)) return false;
    lanes.offsets[lane] = offset;
  }
  return true;
}

struct Wavefronts {
  int64_t all, conflicts;
};

// Distinct words of the busiest bank, summed over the phases of a shared access; those beyond the
// first of a phase are conflicts.
Wavefronts wavefronts_of(const Lanes& lanes, int size, int per_phase) {
  const int words = std::max(1, size / 4);
  Wavefronts total = {0, 0};
  for (int first = 0; first < kLanes; first += per_phase) {
    int64_t kept[32][kLanes];
    uint8_t counts[32] = {};
    int busiest = 0;
    for (int lane = first; lane < first + per_phase; ++lane) {
      if (!lanes.on[lane]) continue;
      for (int word = 0; word < words; ++word) {
        const int64_t at = (lanes.offsets[lane] >> 2) + word;
        int64_t* bank = kept[at & 31];
        uint8_t& count = counts[at & 31];
        if (std::find(bank, bank + count, at) != bank + count) continue;
        bank[count++] = at;
        busiest = std::max<int>(busiest, count);
      }
    }
    total.all += busiest;
    total.conflicts += std::max(0, busiest - 1);
  }
  return total;
}

bool alike(const Lanes& lanes, int bit) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int other = lane ^ bit;
    const bool both = lanes.on[lane] && lanes.on[other];
    if (both && lanes.offsets[lane] != lanes.offsets[other]) return false;
  }
  return true;
}

void count_shared(Memory& memory, const Lanes& lanes, int size, bool pairs) {
  int per_phase = std::max(4, std::min(32, 128 / size));
  if (pairs && size > 4 && (alike(lanes, 1) || alike(lanes, 2))) {
    per_phase = std::min(32, 2 * per_phase);
  }
  const Wavefronts wavefronts = wavefronts_of(lanes, size, per_phase);
  memory.cost[0] += wavefronts.all;
  memory.cost[1] += std::min<int64_t>(wavefronts.all, (lanes.count * size + 127) / 128);
  memory.cost[5] += wavefronts.conflicts;
}

int64_t distinct(int64_t* values, int count) {
  if (!std::is_sorted(values, values + count)) std::sort(values, values + count);
  return std::unique(values, values + count) - values;
}

void count_global(Memory& memory, const Lanes& lanes, int size) {
  int64_t sectors[2 * kLanes], tags[2 * kLanes];
  int count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!lanes.on[lane]) continue;
    for (const int64_t end : {lanes.offsets[lane], lanes.offsets[lane] + size - 1}) {
      if (count && sectors[count - 1] == end >> 5) continue;
      sectors[count] = end >> 5;
      tags[count++] = end >> 7;
    }
  }
  const int64_t found = distinct(sectors, count);
  memory.cost[2] += found;
  memory.cost[3] += std::min<int64_t>(found, (lanes.count * size + 31) / 32);
  memory.cost[4] += distinct(tags, count);
  memory.cost[6] += found;
  ++memory.cost[7];
}

void count(Memory& memory, const Lanes& lanes, int size, bool pairs) {
  if (!lanes.count) return;
  if (memory.is_global) {
    count_global(memory, lanes, size);
  } else {
    count_shared(memory, lanes, size, pairs);
  }
}

int units_of(const Memory& memory, int size) {
  return std::max<int64_t>(1, unit_at(memory, size));
}

// Whether all bytes of a lane's access have been written.
bool is_written(const uint8_t* state, int size) {
  constexpr uint64_t kEvery = 0x0101010101010101 * kWritten;
  for (; size >= 8; size -= 8, state += 8) {
    uint64_t word;
    std::memcpy(&word, state, sizeof word);
    if ((word & kEvery) != kEvery) return false;
  }
  for (int byte = 0; byte < size; ++byte) {
    if (!(state[byte] & kWritten)) return false;
  }
  return true;
}

bool may_read(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes,
              bool coherent) {
  const int64_t* seen = memory.seen + access.warps.places[row] * memory.agents;
  const int units = units_of(memory, access.size);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!lanes.on[lane]) continue;
    const int64_t offset = lanes.offsets[lane];
    if (!is_written(memory.state + offset, access.size)) return false;
    for (int unit = 0; unit < units; ++unit) {
      const int64_t writer = memory.written[unit_at(memory, offset) + unit];
      if (writer && !coherent) return false;
      if (unordered(seen, writer, access.thread(row, lane))) return false;
    }
  }
  return true;
}

bool may_write(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes) {
  const int64_t* seen = memory.seen + access.warps.places[row] * memory.agents;
  const int units = units_of(memory, access.size);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!lanes.on[lane]) continue;
    const int64_t offset = lanes.offsets[lane], thread = access.thread(row, lane);
    for (const int64_t at : {offset, offset + access.size - 1}) {
      const uint8_t state = memory.state[at];
      if (state == kOutside || state == kConstant || state == kBarrier) return false;
    }
    for (int unit = 0; unit < units; ++unit) {
      const int64_t at = unit_at(memory, offset) + unit;
      if (unordered(seen, memory.written[at], thread)) return false;
      for (int64_t i = 0; i < memory.used_count; ++i) {
        if (unordered(seen, memory.read[memory.used[i] * memory.units + at], thread)) return false;
      }
    }
  }
  return true;
}

// Loads what the lanes read: take(row, lane, data). False, and nothing has changed, if there would
// be something to report.
template <class Take>
bool load(Memory& memory, const Access& access, bool pairs, bool coherent, Take take) {
  Lanes lanes;
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    if (!lanes_of(access, row, lanes) || !may_read(memory, access, row, lanes, coherent)) {
      return false;
    }
  }
  std::memset(memory.cost, 0, sizeof memory.cost);
  const int units = units_of(memory, access.size);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    lanes_of(access, row, lanes);
    int64_t* column = memory.read + access.warps.columns[row] * memory.units;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!lanes.on[lane]) continue;
      const int64_t offset = lanes.offsets[lane];
      std::fill_n(column + unit_at(memory, offset), units, access.epoch(row, lane));
      take(row, lane, memory.data + offset);
    }
    count(memory, lanes, access.size, pairs);
  }
  return true;
}

// Stores what the lanes give: give(row, lane, data). False as for load.
template <class Give>
bool store(Memory& memory, const Access& access, Give give) {
  Lanes lanes;
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    if (!lanes_of(access, row, lanes) || !may_write(memory, access, row, lanes)) return false;
  }
  std::memset(memory.cost, 0, sizeof memory.cost);
  const int units = units_of(memory, access.size);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    lanes_of(access, row, lanes);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!lanes.on[lane]) continue;
      const int64_t offset = lanes.offsets[lane], first = unit_at(memory, offset);
      std::fill_n(memory.written + first, units, access.epoch(row, lane));
      memory.pages[first >> kPage] = memory.pages[(first + units - 1) >> kPage] = 1;
      give(row, lane, memory.data + offset);
      std::memset(memory.state + offset, kWritten, access.size);
    }
    count(memory, lanes, access.size, false);
  }
  return true;
}

}  // namespace

// out: [n, 32] or [n, 32, elements], 0xFF where a lane takes no part.
extern "C" int kx_load(Memory* memory, const Warps* warps, const Array* address, int address_bytes,
                       const Array* mask, int masked, int64_t now, int size, int pairs,
                       int coherent, const Array* out) {
  if (!is_plain(address, address_bytes, *warps)) return 1;
  const Access access{*warps, Rows(address), address_bytes, 0, rows_of(mask, masked), size, now};
  std::memset(out->data, 0xFF, warps->rows * kLanes * size);
  return !load(*memory, access, pairs, coherent, [&](int64_t row, int lane, const uint8_t* from) {
    std::memcpy(out->data + (row * kLanes + lane) * size, from, size);
  });
}

// values: [n, 32] or [n, 32, elements].
extern "C" int kx_store(Memory* memory, const Warps* warps, const Array* address, int address_bytes,
                        const Array* mask, int masked, int64_t now, int size, const Array* values,
                        int element) {
  const int dimensions = size > element ? 3 : 2;
  if (!is_plain(address, address_bytes, *warps) || values->dimensions != dimensions ||
      values->shape[0] != warps->rows || values->shape[1] != kLanes) {
    return 1;
  }
  const Access access{*warps, Rows(address), address_bytes, 0, rows_of(mask, masked), size, now};
  const Rows from(values);
  const int64_t step = size > element ? values->strides[2] : 0;
  return !store(*memory, access, [&](int64_t row, int lane, uint8_t* to) {
    for (int done = 0; done < size; done += element) {
      std::memcpy(to + done, from.at(row, lane) + done / element * step, element);
    }
  });
}

// Matrices of 8 rows of 16 bytes whose addresses are 8 lanes' each: ldmatrix and stmatrix. The
// bytes go through all lanes of the warp, so that its own earlier accesses are others' to it.

namespace {

// The lane that a unit of a row belongs to.
int lane_of(int line, int64_t unit, int units) { return line % 8 * 4 + unit * 4 / units; }

bool may_move(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes,
              bool stores) {
  const int64_t* seen = memory.seen + access.warps.places[row] * memory.agents;
  const int units = units_of(memory, access.size);
  for (int line = 0; line < access.lanes; ++line) {
    const int64_t offset = lanes.offsets[line];
    if (!stores && !is_written(memory.state + offset, access.size)) return false;
    for (int unit = 0; unit < units; ++unit) {
      const int64_t at = unit_at(memory, offset) + unit;
      if (unordered(seen, memory.written[at], -1)) return false;
      for (int64_t i = 0; stores && i < memory.used_count; ++i) {
        if (unordered(seen, memory.read[memory.used[i] * memory.units + at], -1)) return false;
      }
    }
  }
  return true;
}

// Where in its 8 x 8 matrix the two elements of a lane's register are, in bytes from the row.
struct Pair {
  int line[2], byte[2];
  Pair(int lane, bool transposed) {
    for (int half = 0; half < 2; ++half) {
      const int major = lane / 4, minor = lane % 4 * 2 + half;
      line[half] = transposed ? minor : major;
      byte[half] = 2 * (transposed ? major : minor);
    }
  }
};

// Moves `matrices` matrices; word(row, matrix, lane) is a lane's register. False as for load.
template <class Word>
bool move_matrices(Memory& memory, const Access& access, int matrices, bool transposed, bool stores,
                   Word word) {
  Lanes lanes;
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    if (!lanes_of(access, row, lanes) || !may_move(memory, access, row, lanes, stores)) {
      return false;
    }
  }
  std::memset(memory.cost, 0, sizeof memory.cost);
  const int units = units_of(memory, access.size);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    lanes_of(access, row, lanes);
    int64_t* history =
        stores ? memory.written : memory.read + access.warps.columns[row] * memory.units;
    for (int line = 0; line < access.lanes; ++line) {
      const int64_t first = unit_at(memory, lanes.offsets[line]);
      for (int unit = 0; unit < units; ++unit) {
        history[first + unit] = access.epoch(row, lane_of(line, unit, units));
      }
      if (!stores) continue;
      memory.pages[first >> kPage] = memory.pages[(first + units - 1) >> kPage] = 1;
      std::memset(memory.state + lanes.offsets[line], kWritten, access.size);
    }
    for (int matrix = 0; matrix < matrices; ++matrix) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const Pair pair(lane, transposed);
        char* const halves = word(row, matrix, lane);
        for (int half = 0; half < 2; ++half) {
          uint8_t* at = memory.data + lanes.offsets[8 * matrix + pair.line[half]] + pair.byte[half];
          if (stores) {
            std::memcpy(at, halves + 2 * half, 2);
          } else {
            std::memcpy(halves + 2 * half, at, 2);
          }
        }
      }
    }
    count(memory, lanes, access.size, false);
  }
  return true;
}

}  // namespace

// registers: uint32 [n, matrices, 32], written by a load.
extern "C" int kx_move_matrices(Memory* memory, const Warps* warps, const Array* address,
                                int address_bytes, int64_t now, int matrices, int transposed,
                                const Array* registers, int stores) {
  if (!is_plain(address, address_bytes, *warps)) return 1;
  const Access access{*warps, Rows(address), address_bytes, 0, kEvery, 16, now, 8 * matrices};
  const auto word = [&](int64_t row, int matrix, int lane) {
    return registers->data + 4 * ((row * matrices + matrix) * kLanes + lane);
  };
  return !move_matrices(*memory, access, matrices, transposed, stores, word);
}

// The same as instructions: slots are the address, then the registers.

namespace {

using kx::Call;

// Of numbers[0]; null where Python has to look at its accesses.
Memory* memory_of(const Call& call, bool stores) {
  const int which = call.instruction.numbers[0];
  const int withheld = call.withheld >> (stores ? 2 : 0) & (1 << which);
  return withheld || !call.set.warps[which] ? nullptr : call.machine.memories[which];
}

Access access_of(const Call& call, int size) {
  const int32_t* numbers = call.instruction.numbers;
  const Rows mask(reinterpret_cast<char*>(const_cast<uint8_t*>(call.on)), kLanes, 1);
  return {*call.set.warps[numbers[0]], call.operand(0), numbers[1], call.instruction.offset, mask,
          size, call.now};
}

bool counted(const Call& call, const Memory& memory) {
  int64_t* costs = call.machine.costs + (1 + kx::kCosts) * call.instruction.site;
  costs[0] += 1;
  for (int i = 0; i < kx::kCosts; ++i) costs[i + 1] += memory.cost[i];
  return true;
}

// numbers: memory, bytes of an address, of an element, elements, whether they are signed, whether
// the load is coherent. A register may be wider than an element.
bool ld(const Call& call, const kx::Named&) {
  Memory* memory = memory_of(call, false);
  if (!memory) return false;
  const int32_t* numbers = call.instruction.numbers;
  const int element = numbers[2], elements = numbers[3], shift = numbers[4] ? 64 - 8 * element : 0;
  const auto take = [&](int64_t row, int lane, const uint8_t* from) {
    for (int i = 0; i < elements; ++i, from += element) {
      const Rows to = call.operand(i + 1);
      int64_t value = 0;
      std::memcpy(&value, from, element);
      value = static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
      std::memcpy(to.at(row, lane), &value, to.lane);
    }
  };
  const Access access = access_of(call, element * elements);
  return load(*memory, access, true, numbers[5], take) && counted(call, *memory);
}

// numbers: as for ld, without the last two.
bool st(const Call& call, const kx::Named&) {
  Memory* memory = memory_of(call, true);
  if (!memory) return false;
  const int element = call.instruction.numbers[2], elements = call.instruction.numbers[3];
  const auto give = [&](int64_t row, int lane, uint8_t* to) {
    for (int i = 0; i < elements; ++i, to += element) {
      std::memcpy(to, call.operand(i + 1).at(row, lane), element);
    }
  };
  return store(*memory, access_of(call, element * elements), give) && counted(call, *memory);
}

// numbers: memory, bytes of an address, matrices, whether they are transposed.
template <bool kStores>
bool matrices(const Call& call, const kx::Named&) {
  Memory* memory = memory_of(call, false);
  if (!memory) return false;
  const int32_t* numbers = call.instruction.numbers;
  Access access = access_of(call, 16);
  access.mask = kEvery;
  access.lanes = 8 * numbers[2];
  const auto word = [&](int64_t row, int matrix, int lane) {
    return call.operand(matrix + 1).at(row, lane);
  };
  return move_matrices(*memory, access, numbers[2], numbers[3], kStores, word) &&
         counted(call, *memory);
}

const kx::Named kNamed[] = {
    {"ld", ld, nullptr, 0, {}},
    {"st", st, nullptr, 0, {}},
    {"ldmatrix", matrices<false>, nullptr, 0, {}},
    {"stmatrix", matrices<true>, nullptr, 0, {}},
};

}  // namespace

const kx::Table kx::kAccesses = {kNamed, sizeof kNamed / sizeof *kNamed};
