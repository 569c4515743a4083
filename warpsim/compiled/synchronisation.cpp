// Arrivals at mbarriers, waits for their phases, __syncwarp and fences: mbarrier_ops.py, phases.py,
// mbarrier.py and clocks.py. Where there would be something to report, or somebody to wait, they
// change nothing and Python executes the instruction.
#include "synchronisation.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "interpreter.hpp"

namespace {

using kx::Call;
using kx::kLanes;
using kx::Mbarrier;
using kx::Named;
using kx::Rows;
using kx::Synchronisation;

constexpr int64_t kMostCount = (1 << 20) - 1, kMbarrierBytes = 8;
constexpr int kStateShift = 20, kRankShift = 24;
constexpr int64_t kWindow = (int64_t{1} << 40) - 1, kOffset = (1 << kRankShift) - 1;

int64_t place_of(const Call& call, int64_t row) { return call.set.first + row * call.set.step; }

uint32_t lanes_of(const Call& call, int64_t row) {
  const uint8_t* active = call.active(row);
  uint32_t lanes = ~0u;
  for (int lane = 0; active && lane < kLanes; ++lane) lanes &= ~(uint32_t(!active[lane]) << lane);
  return lanes;
}

int64_t read(const Rows& rows, int64_t row, int lane, int bytes) {
  const char* at = rows.at(row, lane);
  return bytes == 8 ? kx::load<int64_t>(at) : kx::load<uint32_t>(at);
}

// What a warp has seen: a row of clocks, of which the first agents are warps.
class Row {
 public:
  Row(const Synchronisation& sync, int64_t place)
      : sync_(sync), at_(sync.seen + place * 2 * sync.agents), place_(place) {}

  // What warps learn of a release at a time; formal: with what the warps did themselves.
  void release(Mbarrier& to, int64_t now, bool formal) const {
    int64_t* row = to.releasing();
    const int64_t first = formal ? 0 : sync_.warps;
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t *from = at_ + half * sync_.agents;
      int64_t* into = row + half * sync_.agents;
      if (to.is_releasing) {
        for (int64_t i = first; i < sync_.agents; ++i) into[i] = std::max(into[i], from[i]);
      } else {
        std::fill_n(into, first, 0);
        std::copy(from + first, from + sync_.agents, into + first);
      }
      if (formal) into[place_] = now;
      into[sync_.warps + place_] = now;
    }
    to.is_releasing = 1;
  }

  void acquire(const Mbarrier& from, bool formal) const {
    const int64_t* row = from.released();
    for (int64_t half = 0; half < 2; ++half) {
      int64_t* into = at_ + half * sync_.agents;
      const int64_t* known = row + half * sync_.agents;
      for (int64_t i = formal ? 0 : sync_.warps; i < sync_.agents; ++i) into[i] = std::max(into[i], known[i]);
    }
    sync_.wide[place_] = 1;
  }

  bool is_after_init(const Mbarrier& barrier) const {
    return place_ == barrier.maker || at_[barrier.maker] >= barrier.made;
  }

 private:
  const Synchronisation& sync_;
  int64_t* at_;
  int64_t place_;
};

// The mbarrier at a shared or cluster address that a warp may use; null: Python looks.
Mbarrier* find(const Synchronisation& sync, int64_t place, int64_t address) {
  const int64_t rank = address >> kRankShift, low = address & kOffset;
  if (rank >= sync.cluster_size || low >= sync.stride || low % kMbarrierBytes) return nullptr;
  const int64_t own = place % sync.resident, cta = own / sync.cluster_size * sync.cluster_size + rank;
  if (sync.ended[cta]) return nullptr;
  Mbarrier* barrier = sync.mbarriers[(sync.scratch + cta * sync.stride + low) / kMbarrierBytes];
  if (!barrier || barrier->lost || !Row(sync, place).is_after_init(*barrier)) return nullptr;
  if (cta != own && !sync.used[cta * sync.warps + place]) return nullptr;
  return barrier;
}

// What lanes of a warp do to one mbarrier.
struct Arriving {
  Mbarrier* barrier;
  int64_t place, row;
  uint32_t lanes;
  int64_t total;  // of their numbers
  Mbarrier before;
  bool has_filled, has_completed;  // whether a phase ends with the bytes, or with the arrival
};

bool advance(Mbarrier& barrier) {
  if (barrier.pending || barrier.transactions) return false;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  return true;
}

// Of the rows, when a phase has completed.
void hand_over(Synchronisation& sync, Mbarrier& barrier) {
  if (barrier.is_releasing) {
    if (barrier.has_released) {
      int64_t* released = barrier.released();
      const int64_t* releasing = barrier.releasing();
      for (int64_t i = 0; i < 2 * sync.agents; ++i) released[i] = std::max(released[i], releasing[i]);
    } else {
      barrier.flipped = !barrier.flipped;
      barrier.has_released = 1;
    }
    barrier.is_releasing = 0;
  }
  sync.changed[sync.changed_count++] = barrier.number;
}

// How an instruction arrives: mbarrier_ops.Arrival, a bit each.
enum How : int32_t {
  kExpects = 1, kDrops = 2, kReleases = 4, kNarrow = 8, kLocal = 16, kCompletes = 32, kArrives = 64,
};

// slots: state, address, what is added to that, number; numbers: bytes of an address, How.
bool arrive(const Call& call, const Named&) {
  static std::vector<Arriving> every;
  Synchronisation* sync = call.machine.sync;
  if (!sync || !sync->mbarriers) return false;
  const kx::Instruction& instruction = call.instruction;
  const int bytes = instruction.numbers[0], how = instruction.numbers[1];
  const Rows addresses = call.operand(1), numbers = call.operand(3);
  const bool has_more = call.has(2);
  const Rows more = has_more ? call.operand(2) : addresses;
  every.clear();
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const int64_t place = place_of(call, row), rank = place % sync->resident % sync->cluster_size;
    for (uint32_t left = lanes_of(call, row); left;) {
      Arriving arriving{};
      arriving.place = place, arriving.row = row;
      int64_t address = 0;
      for (uint32_t rest = left; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        int64_t at = read(addresses, row, lane, bytes) + instruction.offset;
        if (has_more) at += read(more, row, lane, 4);
        at &= kWindow;
        if (!arriving.lanes) address = at;
        if (at != address) continue;
        arriving.lanes |= 1u << lane;
        arriving.total += read(numbers, row, lane, 4);
      }
      left &= ~arriving.lanes;
      arriving.barrier = find(*sync, place, address);
      const bool remote = address >> kRankShift != rank;
      if (!arriving.barrier || (remote && how & (kNarrow | kLocal))) return false;
      every.push_back(arriving);
    }
  }
  if (sync->changed_count + 2 * static_cast<int64_t>(every.size()) > kx::kChanged) return false;
  // The counts first, which may have to be taken back.
  const auto counted = [&](Arriving& arriving) {
    Mbarrier& barrier = *arriving.barrier;
    const int64_t lanes = __builtin_popcount(arriving.lanes);
    arriving.before = barrier;
    if (how & kExpects) {
      barrier.transactions += arriving.total;
      if (std::abs(barrier.transactions) > kMostCount) return false;
      arriving.has_filled = advance(barrier);
    }
    if (!(how & kArrives)) return true;
    const int64_t count = how & kExpects ? lanes : arriving.total;
    if (!(how & kCompletes) && barrier.pending <= count) return false;
    barrier.pending -= count;
    if (how & kDrops) barrier.expected -= count;
    if (barrier.pending < 0) return false;
    arriving.has_completed = advance(barrier);
    return true;
  };
  for (size_t i = 0; i < every.size(); ++i) {
    if (counted(every[i])) continue;
    for (size_t taken = i + 1; taken-- > 0;) *every[taken].barrier = every[taken].before;
    return false;
  }
  for (const Arriving& arriving : every) {
    Mbarrier& barrier = *arriving.barrier;
    if (barrier.cta != arriving.place % sync->resident) {
      sync->used[barrier.cta * sync->warps + arriving.place] = call.now;
    }
    if (call.has(0)) {
      const int64_t state = arriving.before.phase << kStateShift | arriving.before.pending;
      for (uint32_t rest = arriving.lanes; rest; rest &= rest - 1) {
        std::memcpy(call.operand(0).at(arriving.row, __builtin_ctz(rest)), &state, sizeof state);
      }
    }
    if (arriving.has_filled) hand_over(*sync, barrier);
    if (how & kArrives && sync->ordered) {
      Row(*sync, arriving.place).release(barrier, call.now++, how & kReleases);
    }
    if (arriving.has_completed) hand_over(*sync, barrier);
  }
  return true;
}

// Passes if the phases that all lanes ask for have completed. slots: result, address, what is added
// to that, parity or state; numbers: bytes of an address, of the last, where in it the parity stands,
// whether it is one, whether the wait acquires.
bool wait(const Call& call, const Named&) {
  Synchronisation* sync = call.machine.sync;
  if (!sync || !sync->mbarriers) return false;
  const int32_t* how = call.instruction.numbers;
  const Rows addresses = call.operand(1), wanted = call.operand(3);
  const bool has_more = call.has(2);
  const Rows more = has_more ? call.operand(2) : addresses;
  static std::vector<Mbarrier*> barriers;
  barriers.resize(call.set.rows);
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const int64_t place = place_of(call, row);
    const uint32_t lanes = lanes_of(call, row);
    if (!lanes) return false;
    int64_t base = 0, asked = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      int64_t at = read(addresses, row, lane, how[0]);
      if (has_more) at = uint32_t(at + read(more, row, lane, 4));
      const int64_t want = read(wanted, row, lane, how[1]) >> how[2];
      if (rest == lanes) base = at, asked = want;
      if (at != base || want != asked) return false;
    }
    const int64_t address = (base + call.instruction.offset) & kWindow;
    if (address >> kRankShift != place % sync->resident % sync->cluster_size) return false;
    Mbarrier* barrier = barriers[row] = find(*sync, place, address);
    if (!barrier) return false;
    const bool passed = how[3] ? (barrier->phase & 1) != asked : barrier->phase != asked >> kStateShift;
    if (!passed) return false;
    sync->waits[2 * row] = barrier->number;
    sync->waits[2 * row + 1] = asked;
  }
  const Rows results = call.operand(0);
  for (int64_t row = 0; row < call.set.rows; ++row) {
    for (uint32_t rest = lanes_of(call, row); rest; rest &= rest - 1) {
      *results.at(row, __builtin_ctz(rest)) = 1;
    }
    const Mbarrier& barrier = *barriers[row];
    if (barrier.has_released && sync->ordered) Row(*sync, place_of(call, row)).acquire(barrier, how[4]);
  }
  sync->waited = 1;
  return true;
}

// bar.warp.sync of all lanes.
bool converge(const Call& call, const Named&) {
  const Synchronisation* sync = call.machine.sync;
  if (!sync) return false;
  for (int64_t row = 0; sync->ordered && row < call.set.rows; ++row) {
    const int64_t place = place_of(call, row);
    int64_t* seen = sync->seen + place * 2 * sync->agents + place;
    seen[0] = seen[sync->agents] = call.now++;
  }
  return true;
}

// numbers: of which proxies, a bit each.
bool fence_proxies(const Call& call, const Named&) {
  Synchronisation* sync = call.machine.sync;
  if (!sync) return false;
  for (int proxy = 0; proxy < 2; ++proxy) {
    if (!sync->ordered || !(call.instruction.numbers[0] >> proxy & 1)) continue;
    const kx::ProxyFences& fences = sync->proxies[proxy];
    for (int64_t row = 0; row < call.set.rows; ++row) {
      const int64_t place = place_of(call, row), agents = 2 * sync->agents;
      int64_t* times = fences.times + place * sync->kept * kLanes;
      for (uint32_t rest = lanes_of(call, row); rest; rest &= rest - 1) {
        int64_t* own = times + __builtin_ctz(rest);
        for (int64_t i = sync->kept - 1; i > 0; --i) own[i * kLanes] = own[(i - 1) * kLanes];
        own[0] = call.now;
      }
      std::copy_n(sync->seen + place * agents, agents, fences.seen + place * agents);
    }
    sync->fences |= 1 << proxy;
  }
  ++call.now;
  return true;
}

bool fence_init(const Call& call, const Named&) {
  const Synchronisation* sync = call.machine.sync;
  if (!sync) return false;
  for (int64_t row = 0; sync->ordered && row < call.set.rows; ++row) {
    sync->fenced_init[place_of(call, row)] = call.now++;
  }
  return true;
}

const Named kNamed[] = {
    {"mbarrier.arrive", arrive, nullptr, 0, {}},
    {"mbarrier.wait", wait, nullptr, 0, {}},
    {"bar.warp.sync", converge, nullptr, 0, {}},
    {"fence.proxy.async", fence_proxies, nullptr, 0, {}},
    {"fence.mbarrier_init", fence_init, nullptr, 0, {}},
};

}  // namespace

const kx::Table kx::kSynchronises = {kNamed, sizeof kNamed / sizeof *kNamed};
