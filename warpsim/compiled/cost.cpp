// What an access of a warp costs: the rules of access.py.
#include <algorithm>
#include <cstring>

#include "memory.hpp"

namespace {

using kx::kCosts;
using kx::kLanes;
using kx::Lanes;

constexpr int64_t kLine = 128;

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
      if (!lanes.has(lane)) continue;
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
    const bool both = lanes.has(lane) && lanes.has(lane ^ bit);
    if (both && lanes.offsets[lane] != lanes.offsets[lane ^ bit]) return false;
  }
  return true;
}

// The figures in the order of Memory::cost.
struct Cost {
  int64_t figures[kCosts] = {};
};

Cost shared_cost(const Lanes& lanes, int size, bool pairs) {
  int per_phase = std::max(4, std::min(32, 128 / size));
  if (pairs && size > 4 && (alike(lanes, 1) || alike(lanes, 2))) {
    per_phase = std::min(32, 2 * per_phase);
  }
  const Wavefronts wavefronts = wavefronts_of(lanes, size, per_phase);
  Cost cost;
  cost.figures[0] = wavefronts.all;
  cost.figures[1] = std::min<int64_t>(wavefronts.all, (lanes.count() * size + 127) / 128);
  cost.figures[5] = wavefronts.conflicts;
  return cost;
}

int64_t distinct(int64_t* values, int count) {
  if (!std::is_sorted(values, values + count)) std::sort(values, values + count);
  return std::unique(values, values + count) - values;
}

Cost global_cost(const Lanes& lanes, int size) {
  int64_t sectors[2 * kLanes], tags[2 * kLanes];
  int count = 0;
  lanes.every([&](int lane) {
    for (const int64_t end : {lanes.offsets[lane], lanes.offsets[lane] + size - 1}) {
      if (count && sectors[count - 1] == end >> 5) continue;
      sectors[count] = end >> 5;
      tags[count++] = end >> 7;
    }
    return true;
  });
  const int64_t found = distinct(sectors, count);
  Cost cost;
  cost.figures[2] = cost.figures[6] = found;
  cost.figures[3] = std::min<int64_t>(found, (lanes.count() * size + 31) / 32);
  cost.figures[4] = distinct(tags, count);
  cost.figures[7] = 1;
  return cost;
}

// All that an access's cost depends on: addresses from the line of the first active lane on, 0 of
// lanes that take no part.
struct Pattern {
  uint32_t on = 0;
  int32_t how = 0;
  int32_t offsets[kLanes];

  uint32_t hash() const {
    uint32_t sum = on * 0x85EBCA6B + how;
    for (int lane = 0; lane < kLanes; ++lane) sum += offsets[lane] * (0x9E3779B1 + 2 * lane);
    return sum ^ sum >> 15;
  }
};

struct Known {
  Pattern pattern;
  Cost cost;
};

constexpr int kKnown = 256;

}  // namespace

void kx::count(Memory& memory, const Lanes& lanes, int size, bool pairs) {
  if (!lanes.on) return;
  static Known known[kKnown];  // a kernel has few patterns, each again and again
  Pattern pattern;
  const int64_t first = lanes.offsets[__builtin_ctz(lanes.on)] & -kLine;
  bool fits = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t offset = lanes.has(lane) ? lanes.offsets[lane] - first : 0;
    pattern.offsets[lane] = static_cast<int32_t>(offset);
    fits &= pattern.offsets[lane] == offset;
  }
  pattern.on = lanes.on;
  pattern.how = size << 2 | pairs << 1 | (memory.is_global != 0);
  Known& found = known[pattern.hash() % kKnown];
  Cost cost = found.cost;
  if (!fits || std::memcmp(&found.pattern, &pattern, sizeof pattern) != 0) {
    cost = memory.is_global ? global_cost(lanes, size) : shared_cost(lanes, size, pairs);
    if (fits) found = {pattern, cost};
  }
  for (int i = 0; i < kCosts; ++i) memory.cost[i] += cost.figures[i];
}

// Of accesses of warps at offsets (contiguous int64, [warps, 32]), by the lanes that `mask` has (bool,
// if masked): left in memory.cost.
extern "C" int kx_cost(kx::Memory* memory, const kx::Array* offsets, const kx::Array* mask,
                       int masked, int size, int pairs) {
  std::memset(memory->cost, 0, sizeof memory->cost);
  for (int64_t row = 0; row < offsets->shape[0]; ++row) {
    Lanes lanes;
    lanes.on = 0;
    std::memcpy(lanes.offsets, kx::integers(offsets) + row * kLanes, sizeof lanes.offsets);
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes.on |= uint32_t(!masked || mask->data[row * kLanes + lane]) << lane;
    }
    kx::count(*memory, lanes, size, pairs);
  }
  return 0;
}
