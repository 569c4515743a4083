// A memory, the last accesses to it, and which of them are ordered before others: arena.py,
// history.py and clocks.py.
#pragma once
#include <algorithm>
#include <cstdint>

#include "interpreter.hpp"

namespace kx {

// native_layout.py has the same fields in the same order.
struct Memory {
  uint8_t* data;
  uint8_t* state;
  int64_t* written;
  int64_t* read;
  uint8_t* pages;
  const int64_t* seen;
  int64_t* uses;    // how many columns of `read` have any reader, and which
  int64_t size;     // bytes of data
  int64_t units;    // of the history
  int64_t unit;     // bytes
  int64_t peers, others;  // of `read`: what readers have hidden of each other, see history.py
  int64_t engines;  // their column of `read`
  int64_t earlier;  // the same of what CTAs of earlier waves have read
  int64_t agents;   // columns of seen
  int64_t warps, ctas;  // that are resident
  int64_t first;    // epoch of this wave
  int64_t before;   // what those of earlier waves count as, but for their instruction
  int64_t is_global;
  int64_t unordered;  // whether nobody looks at order: there is no history
  int64_t unread;     // whether nobody looks at reads of what nobody wrote
  int64_t uncounted;  // whether costs are not
  // Of the last access, as Cost in access.py: wavefronts, ideal ones, sectors, ideal ones, tags,
  // conflicts, sectors of the L1, requests.
  int64_t cost[kCosts];

  // Notes that units are written.
  void touch(int64_t unit, int64_t count) const;
  // An epoch, or what it counts as if it is of an earlier wave.
  int64_t known(int64_t epoch) const;
  // Calls of(column) for each with readers; false as soon as one of the calls is.
  template <class Of>
  bool every_column(Of of) const {
    for (int64_t i = 1; i <= uses[0]; ++i) {
      if (!of(read + uses[i] * units)) return false;
    }
    return true;
  }
  // Notes that a column has readers.
  void use(int64_t column) const;
};

constexpr int kThreadBits = 20;
constexpr int64_t kThread = (1 << kThreadBits) - 1;
constexpr int kSiteBits = 16;
constexpr int kTime = kThreadBits + kSiteBits;  // the lowest bit of an epoch's time: see clocks.py
constexpr int kPage = 12;
constexpr uint8_t kOutside = 0, kUnwritten = 1, kWritten = 2, kConstant = 6, kBarrier = 10;

inline void Memory::touch(int64_t unit, int64_t count) const {
  pages[unit >> kPage] = pages[(unit + count - 1) >> kPage] = 1;
}

inline int64_t Memory::known(int64_t epoch) const {
  constexpr int64_t kSites = ((1ll << kSiteBits) - 1) << kThreadBits;
  return epoch >= first || !epoch ? epoch : before | (epoch & kSites);
}

inline void Memory::use(int64_t column) const {
  int64_t* const end = uses + 1 + uses[0];
  if (std::find(uses + 1, end, column) != end) return;
  *end = column;
  ++uses[0];
}

// Notes reads by a warp or an engine, to which `known` is known, in a column. What an earlier wave
// has read there stays known, and so does what others have that is not ordered before it: history.py.
class Reads {
 public:
  Reads(const Memory& memory, int64_t column, const int64_t* known)
      : memory_(memory), column_(memory.read + column * memory.units), known_(known) {}

  void note(int64_t unit, int64_t epoch) {
    const int64_t old = column_[unit];
    column_[unit] = epoch;
    if (!old) return;
    if (old < memory_.first) return keep(old, unit);
    if (!((old ^ epoch) & kThread & -kLanes)) return;
    if ((old ^ last_) & kOther) {
      last_ = old;
      hidden_ = hides(old, epoch);
    }
    if (!hidden_) return;
    if (hidden_[unit] && hidden_[unit] < memory_.first) keep(hidden_[unit], unit);
    hidden_[unit] = old;
  }

 private:
  static constexpr int64_t kOther = ~((1ll << kTime) - 1) | (kThread & -kLanes);

  void keep(int64_t old, int64_t unit) const {
    int64_t& kept = memory_.read[memory_.earlier * memory_.units + unit];
    kept = std::max(kept, old);
  }

  // Where the reads of `old` are kept that are hidden now; null where they are ordered before.
  int64_t* hides(int64_t old, int64_t epoch) const {
    const int64_t agent = (old & kThread) / kLanes, other = (epoch & kThread) / kLanes;
    if (known_[agent] >= old >> kTime) return nullptr;
    const bool near = std::max(agent, other) < memory_.warps && (agent - other) % memory_.ctas == 0;
    const int64_t column = near ? memory_.peers : memory_.others;
    memory_.use(column);
    return memory_.read + column * memory_.units;
  }

  const Memory& memory_;
  int64_t* column_;
  const int64_t* known_;
  int64_t last_ = 0;           // the epoch of another that was looked at last
  int64_t* hidden_ = nullptr;  // where its reads are kept
};

// Of the history: units are powers of two.
inline int64_t unit_at(const Memory& memory, int64_t offset) {
  return offset >> __builtin_ctzll(memory.unit);
}

// Whether an earlier access is not ordered before one by a thread to which `seen` is known.
inline bool unordered(const int64_t* seen, int64_t epoch, int64_t thread) {
  if (!epoch) return false;
  const int64_t other = epoch & kThread;
  return other != thread && seen[other >> 5] < epoch >> kTime;
}

// Where the lanes of a warp access a memory.
struct Lanes {
  int64_t offsets[kLanes];
  uint32_t on;  // which do, a bit each

  bool has(int lane) const { return on >> lane & 1; }
  int count() const { return __builtin_popcount(on); }

  // Calls of(lane) for each that does; false as soon as one of the calls is.
  template <class Of>
  bool every(Of of) const {
    if (on == ~0u) {
      for (int lane = 0; lane < kLanes; ++lane) {
        if (!of(lane)) return false;
      }
      return true;
    }
    for (uint32_t left = on; left; left &= left - 1) {
      if (!of(__builtin_ctz(left))) return false;
    }
    return true;
  }
};

// Adds what an access costs to memory.cost. pairs: whether lanes with the same address may share a
// phase. The implementation is in cost.cpp.
void count(Memory& memory, const Lanes& lanes, int size, bool pairs);

// An engine that reads for a thread. seen and fenced: what that thread had seen, and had at its last
// proxy fence, by agent; fences: when each thread made its last ones, [warps, fences, 32].
struct Reader {
  const int64_t *seen, *fenced, *fences;
  int64_t issuer, warps, kept;

  Reader(const Array* seen, int64_t issuer, const Array* fenced, const Array* fences)
      : seen(integers(seen)),
        fenced(integers(fenced)),
        fences(integers(fences)),
        issuer(issuer),
        warps(fences->shape[0]),
        kept(fences->shape[1]) {}

  // Whether the write of an epoch is ordered before what it reads now, and visible to it.
  bool may_read(int64_t epoch) const {
    const int64_t thread = epoch & kThread, time = epoch >> kTime;
    if (!epoch) return true;
    if (unordered(seen, epoch, issuer)) return false;
    const int64_t warp = thread / kLanes;
    return warp >= warps || fenced[warp] >= time || fenced_by_writer(thread, time);
  }

 private:
  // As Clocks.unfenced has it.
  bool fenced_by_writer(int64_t thread, int64_t time) const {
    const int64_t warp = thread / kLanes;
    const int64_t known = thread == issuer ? INT64_MAX : std::max(seen[warp], seen[warps + warp]);
    const int64_t* fence = fences + warp * kept * kLanes + thread % kLanes;
    for (int64_t i = 0; i < kept; ++i, fence += kLanes) {
      if (*fence < time) return false;  // and so are all before it
      if (*fence <= known) return true;
    }
    return true;
  }
};

}  // namespace kx
