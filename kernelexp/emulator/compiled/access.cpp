// Loads and stores of warps whose accesses are all as they should be: spaces.py, races.py and
// access.py in one pass. Whatever there would be to report makes a function return nonzero before
// it has changed anything, and Python does the whole access.
#include <algorithm>
#include <cstring>

#include "array.hpp"

namespace {

using kx::Array;

constexpr int kLanes = 32;
constexpr int kThreadBits = 20;
constexpr int64_t kThread = (1 << kThreadBits) - 1;
constexpr int kPage = 12;
constexpr uint8_t kOutside = 0, kWritten = 2, kConstant = 6, kBarrier = 10;

// fast_access.py has the same fields in the same order.
struct Memory {
  uint8_t* data;
  uint8_t* state;
  int64_t* written;
  int64_t* read;
  uint8_t* pages;
  const int64_t* seen;
  int64_t size;    // bytes of data
  int64_t units;   // of the history
  int64_t unit;    // bytes
  int64_t agents;  // columns of seen
  int64_t is_global;
  // Of the last access, as Cost in access.py: wavefronts, ideal ones, sectors, ideal ones, tags,
  // conflicts, sectors of the L1, requests.
  int64_t cost[8];
};

// A set of warps, and where its accesses to one memory may go.
struct Warps {
  const int64_t* base;   // [n]: what turns an address into an offset
  const int64_t* lower;  // [n]: the first offset that is allowed
  const int64_t* places;
  const int64_t* columns;
  int64_t rows;
  int64_t extent;  // bytes from `lower` on
};

struct Call {
  const Warps& warps;
  const Array* address;  // of 4 or 8 bytes [n, 32]
  const Array* mask;     // bool [n, 32], or null
  int address_bytes;
  int size;
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

bool is_plain(const Call& call) {
  const Array* a = call.address;
  return call.address_bytes >= 4 && a->dimensions == 2 && a->shape[0] == call.warps.rows &&
         a->shape[1] == kLanes;
}

bool lanes_of(const Call& call, int64_t row, Lanes& lanes) {
  const Warps& warps = call.warps;
  const kx::Rows address(call.address);
  lanes.count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.on[lane] = lane < call.lanes && (!call.mask || *kx::Rows(call.mask).at(row, lane));
    if (!lanes.on[lane]) continue;
    ++lanes.count;
    const char* at = address.at(row, lane);
    const int64_t value = call.address_bytes == 8 ? kx::load<int64_t>(at) : kx::load<uint32_t>(at);
    const int64_t offset = value + warps.base[row];
    const uint64_t inside = offset - warps.lower[row];
    if (offset & (call.size - 1) || inside >= static_cast<uint64_t>(warps.extent)) return false;
    lanes.offsets[lane] = offset;
  }
  return true;
}

bool unordered(const int64_t* seen, int64_t epoch, int64_t thread) {
  if (!epoch) return false;
  const int64_t other = epoch & kThread;
  return other != thread && seen[other >> 5] < epoch >> kThreadBits;
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
    if (lanes.on[lane] && lanes.on[lane ^ bit] && lanes.offsets[lane] != lanes.offsets[lane ^ bit]) return false;
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
  std::sort(values, values + count);
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
  return std::max<int64_t>(1, size / memory.unit);
}

bool may_read(const Memory& memory, const Call& call, int64_t row, const Lanes& lanes,
              bool coherent) {
  const int64_t* seen = memory.seen + call.warps.places[row] * memory.agents;
  const int units = units_of(memory, call.size);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!lanes.on[lane]) continue;
    const int64_t offset = lanes.offsets[lane];
    for (int byte = 0; byte < call.size; ++byte) {
      if (!(memory.state[offset + byte] & kWritten)) return false;
    }
    for (int unit = 0; unit < units; ++unit) {
      const int64_t writer = memory.written[offset / memory.unit + unit];
      if (writer && !coherent) return false;
      if (unordered(seen, writer, call.thread(row, lane))) return false;
    }
  }
  return true;
}

bool may_write(const Memory& memory, const Call& call, int64_t row, const Lanes& lanes,
               const Array* used) {
  const int64_t* seen = memory.seen + call.warps.places[row] * memory.agents;
  const int64_t* columns = reinterpret_cast<const int64_t*>(used->data);
  const int units = units_of(memory, call.size);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!lanes.on[lane]) continue;
    const int64_t offset = lanes.offsets[lane], thread = call.thread(row, lane);
    for (const int64_t at : {offset, offset + call.size - 1}) {
      const uint8_t state = memory.state[at];
      if (state == kOutside || state == kConstant || state == kBarrier) return false;
    }
    for (int unit = 0; unit < units; ++unit) {
      const int64_t at = offset / memory.unit + unit;
      if (unordered(seen, memory.written[at], thread)) return false;
      for (int64_t i = 0; i < used->shape[0]; ++i) {
        if (unordered(seen, memory.read[columns[i] * memory.units + at], thread)) return false;
      }
    }
  }
  return true;
}

}  // namespace

// out: [n, 32] or [n, 32, elements], 0xFF where a lane takes no part.
extern "C" int kx_load(Memory* memory, const Warps* warps, const Array* address, int address_bytes,
                       const Array* mask, int masked, int64_t now, int size, int pairs,
                       int coherent, const Array* out) {
  const Call call{*warps, address, masked ? mask : nullptr, address_bytes, size, now};
  if (!is_plain(call)) return 1;
  Lanes lanes;
  for (int64_t row = 0; row < warps->rows; ++row) {
    if (!lanes_of(call, row, lanes) || !may_read(*memory, call, row, lanes, coherent)) return 1;
  }
  std::memset(memory->cost, 0, sizeof memory->cost);
  const int units = units_of(*memory, size);
  char* to = out->data;
  for (int64_t row = 0; row < warps->rows; ++row) {
    lanes_of(call, row, lanes);
    int64_t* column = memory->read + warps->columns[row] * memory->units;
    for (int lane = 0; lane < kLanes; ++lane, to += size) {
      if (lanes.on[lane]) {
        const int64_t offset = lanes.offsets[lane];
        std::fill_n(column + offset / memory->unit, units, call.epoch(row, lane));
        std::memcpy(to, memory->data + offset, size);
      } else {
        std::memset(to, 0xFF, size);
      }
    }
    count(*memory, lanes, size, pairs);
  }
  return 0;
}

// values: [n, 32] or [n, 32, elements]; used: the columns of the history with any reader.
extern "C" int kx_store(Memory* memory, const Warps* warps, const Array* address, int address_bytes,
                        const Array* mask, int masked, int64_t now, int size, const Array* values,
                        int element, const Array* used) {
  const Call call{*warps, address, masked ? mask : nullptr, address_bytes, size, now};
  const int dimensions = size > element ? 3 : 2;
  if (!is_plain(call) || values->dimensions != dimensions || values->shape[0] != warps->rows ||
      values->shape[1] != kLanes) {
    return 1;
  }
  Lanes lanes;
  for (int64_t row = 0; row < warps->rows; ++row) {
    if (!lanes_of(call, row, lanes) || !may_write(*memory, call, row, lanes, used)) return 1;
  }
  std::memset(memory->cost, 0, sizeof memory->cost);
  const kx::Rows from(values);
  const int64_t step = size > element ? values->strides[2] : 0;
  const int units = units_of(*memory, size);
  for (int64_t row = 0; row < warps->rows; ++row) {
    lanes_of(call, row, lanes);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!lanes.on[lane]) continue;
      const int64_t offset = lanes.offsets[lane], first = offset / memory->unit;
      std::fill_n(memory->written + first, units, call.epoch(row, lane));
      memory->pages[first >> kPage] = memory->pages[(first + units - 1) >> kPage] = 1;
      for (int done = 0; done < size; done += element) {
        std::memcpy(memory->data + offset + done, from.at(row, lane) + done / element * step,
                    element);
      }
      std::memset(memory->state + offset, kWritten, size);
    }
    count(*memory, lanes, size, false);
  }
  return 0;
}

// Matrices of 8 rows of 16 bytes whose addresses are 8 lanes' each: ldmatrix and stmatrix. The
// bytes go through all lanes of the warp, so that its own earlier accesses are others' to it.

namespace {

// The lane that a unit of a row belongs to.
int lane_of(int line, int64_t unit, int units) { return line % 8 * 4 + unit * 4 / units; }

bool may_move(const Memory& memory, const Call& call, int64_t row, const Lanes& lanes,
              const Array* used) {
  const int64_t* seen = memory.seen + call.warps.places[row] * memory.agents;
  const int units = units_of(memory, call.size);
  for (int line = 0; line < call.lanes; ++line) {
    const int64_t offset = lanes.offsets[line];
    for (int byte = 0; !used && byte < call.size; ++byte) {
      if (!(memory.state[offset + byte] & kWritten)) return false;
    }
    for (int unit = 0; unit < units; ++unit) {
      const int64_t at = offset / memory.unit + unit;
      if (unordered(seen, memory.written[at], -1)) return false;
      for (int64_t i = 0; used && i < used->shape[0]; ++i) {
        const int64_t column = reinterpret_cast<const int64_t*>(used->data)[i];
        if (unordered(seen, memory.read[column * memory.units + at], -1)) return false;
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

}  // namespace

// registers: uint32 [n, count, 32], written by a load; used: as in kx_store, null for a load.
static int move_matrices(Memory* memory, const Warps* warps, const Array* address,
                         int address_bytes, int64_t now, int count_, bool transposed,
                         const Array* registers, const Array* used) {
  const Call call{*warps, address, nullptr, address_bytes, 16, now, 8 * count_};
  if (!is_plain(call)) return 1;
  Lanes lanes;
  for (int64_t row = 0; row < warps->rows; ++row) {
    if (!lanes_of(call, row, lanes) || !may_move(*memory, call, row, lanes, used)) return 1;
  }
  std::memset(memory->cost, 0, sizeof memory->cost);
  const int units = units_of(*memory, call.size);
  char* word = registers->data;
  for (int64_t row = 0; row < warps->rows; ++row) {
    lanes_of(call, row, lanes);
    int64_t* history =
        used ? memory->written : memory->read + warps->columns[row] * memory->units;
    for (int line = 0; line < call.lanes; ++line) {
      const int64_t first = lanes.offsets[line] / memory->unit;
      for (int unit = 0; unit < units; ++unit) {
        history[first + unit] = call.epoch(row, lane_of(line, unit, units));
      }
      if (!used) continue;
      memory->pages[first >> kPage] = memory->pages[(first + units - 1) >> kPage] = 1;
      std::memset(memory->state + lanes.offsets[line], kWritten, call.size);
    }
    for (int matrix = 0; matrix < count_; ++matrix) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const Pair pair(lane, transposed);
        for (int half = 0; half < 2; ++half, word += 2) {
          uint8_t* at = memory->data + lanes.offsets[8 * matrix + pair.line[half]] + pair.byte[half];
          if (used) {
            std::memcpy(at, word, 2);
          } else {
            std::memcpy(word, at, 2);
          }
        }
      }
    }
    count(*memory, lanes, call.size, false);
  }
  return 0;
}

extern "C" int kx_load_matrices(Memory* memory, const Warps* warps, const Array* address,
                                int address_bytes, int64_t now, int count, int transposed,
                                const Array* registers) {
  return move_matrices(memory, warps, address, address_bytes, now, count, transposed, registers,
                       nullptr);
}

extern "C" int kx_store_matrices(Memory* memory, const Warps* warps, const Array* address,
                                 int address_bytes, int64_t now, int count, int transposed,
                                 const Array* registers, const Array* used) {
  return move_matrices(memory, warps, address, address_bytes, now, count, transposed, registers,
                       used);
}
