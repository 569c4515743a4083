// Loads and stores of warps whose accesses are all as they should be: spaces.py, races.py and
// access.py in one pass. Whatever there would be to report makes a function return nonzero before
// it has changed anything, and Python does the whole access.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "interpreter.hpp"
#include "marks.hpp"
#include "memory.hpp"

// A set of warps, and where its accesses to one memory may go.
struct kx::Warps {
  const int64_t* base;   // [n]: what turns an address into an offset
  const int64_t* lower;  // [n]: the first offset that is allowed
  const int64_t* places;
  const int64_t* columns;
  int64_t rows;
  int64_t extent;  // bytes from `lower` on
  int64_t lane;    // from the first offset of a lane to the next one's: they have it for themselves
};

namespace {

using kx::Array;
using kx::kBarrier;
using kx::kConstant;
using kx::kLanes;
using kx::kOutside;
using kx::kThread;
using kx::kSiteBits;
using kx::kThreadBits;
using kx::kTime;
using kx::kUnwritten;
using kx::kWritten;
using kx::Lanes;
using kx::Memory;
using kx::Reads;
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
  int64_t stamp;      // an epoch, but for its thread
  int lanes = kLanes;  // that give an address

  int64_t thread(int64_t row, int lane) const { return warps.places[row] * kLanes + lane; }
  int64_t epoch(int64_t row, int lane) const { return stamp | thread(row, lane); }
  const int64_t* seen(const Memory& memory, int64_t row) const {
    return memory.seen + warps.places[row] * memory.agents;
  }
};

const Rows kEvery(nullptr, 0, 0);

Rows rows_of(const Array* mask, int masked) { return masked ? Rows(mask) : kEvery; }

bool is_plain(const Array* a, int bytes, const Warps& warps) {
  return bytes >= 4 && a->dimensions == 2 && a->shape[0] == warps.rows && a->shape[1] == kLanes;
}

// Calls of(bytes) with a constant of that many bytes.
template <class Of>
auto with_bytes(int bytes, Of of) {
  switch (bytes) {
    case 1: return of(std::integral_constant<int, 1>());
    case 2: return of(std::integral_constant<int, 2>());
    case 4: return of(std::integral_constant<int, 4>());
    case 8: return of(std::integral_constant<int, 8>());
    case 16: return of(std::integral_constant<int, 16>());
    default: return of(std::integral_constant<int, 32>());
  }
}

// Which lanes take part, and at which offsets; false if one of these is not in the memory.
template <class Address>
bool place(const Access& access, int64_t row, Lanes& lanes) {
  const Warps& warps = access.warps;
  lanes.on = access.lanes < kLanes ? (1u << access.lanes) - 1 : ~0u;
  for (int lane = 0; access.mask.data && lane < kLanes; ++lane) {
    lanes.on &= ~(uint32_t(!*access.mask.at(row, lane)) << lane);
  }
  const int64_t base = warps.base[row] + access.added, lower = warps.lower[row];
  return lanes.every([&](int lane) {
    const int64_t own = lane * warps.lane;
    const int64_t offset = kx::load<Address>(access.address.at(row, lane)) + base + own;
    const uint64_t inside = offset - lower - own;
    lanes.offsets[lane] = offset;
    return !(offset & (access.size - 1)) && inside < static_cast<uint64_t>(warps.extent);
  });
}

// Of all rows of an access, until the next one.
std::vector<Lanes> placed;

// The same; null where place() gives false.
const Lanes* all_lanes(const Access& access) {
  if (placed.size() < static_cast<size_t>(access.warps.rows)) placed.resize(access.warps.rows);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    const bool inside = access.address_bytes == 8 ? place<int64_t>(access, row, placed[row])
                                                  : place<int32_t>(access, row, placed[row]);
    if (!inside) return nullptr;
  }
  return placed.data();
}

int units_of(const Memory& memory, int size) {
  return std::max<int64_t>(1, unit_at(memory, size));
}

template <int kBytes>
bool is_written(const uint8_t* state) {
  constexpr int kPart = std::min(kBytes, 8);
  uint64_t found = ~uint64_t(0);
  for (int byte = 0; byte < kBytes; byte += kPart) {
    uint64_t part = ~uint64_t(0);
    std::memcpy(&part, state + byte, kPart);
    found &= part;
  }
  constexpr uint64_t kEach = 0x0101010101010101 * kWritten;
  return (found & kEach) == kEach;
}

bool is_writable(uint8_t state) {
  return state != kOutside && state != kConstant && state != kBarrier;
}

// Earlier accesses, as a warp has seen them.
struct Order {
  const Memory& memory;
  const int64_t* seen;
  int64_t last = 0;  // an epoch that is ordered before what the warp does: there are few

  Order(const Memory& memory, const Access& access, int64_t row)
      : memory(memory), seen(access.seen(memory, row)) {}

  bool is_before(int64_t epoch, int64_t thread) {
    if (!((epoch ^ last) & -int64_t{kLanes})) return true;  // another lane's is before as well
    const int64_t known = memory.known(epoch), other = known & kThread;
    if (seen[other >> 5] < known >> kTime) return other == thread;
    last = epoch;
    return true;
  }
};

template <int kBytes>
bool may_read(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes,
              bool coherent) {
  Order order(memory, access, row);
  const int units = units_of(memory, kBytes), shift = __builtin_ctzll(memory.unit);
  if (memory.unordered) {
    return lanes.every([&](int lane) {
      const uint8_t* state = memory.state + lanes.offsets[lane];
      if (memory.unread) return state[0] != kOutside && state[kBytes - 1] != kOutside;
      return is_written<kBytes>(state);
    });
  }
  return lanes.every([&](int lane) {
    const int64_t offset = lanes.offsets[lane], thread = access.thread(row, lane);
    if (!is_written<kBytes>(memory.state + offset)) return false;
    const int64_t* writers = memory.written + (offset >> shift);
    for (int unit = 0; unit < units; ++unit) {
      if (writers[unit] && !coherent) return false;
      if (!order.is_before(writers[unit], thread)) return false;
    }
    return true;
  });
}

// Of what is not checked: whether a load stays in some object.
bool is_inside(const Memory& memory, const Access& access, const Lanes& lanes) {
  return lanes.every([&](int lane) {
    const uint8_t* state = memory.state + lanes.offsets[lane];
    return state[0] != kOutside && state[access.size - 1] != kOutside;
  });
}

bool are_writable(const Memory& memory, const Access& access, const Lanes& lanes) {
  return lanes.every([&](int lane) {
    const uint8_t* state = memory.state + lanes.offsets[lane];
    return is_writable(state[0]) && is_writable(state[access.size - 1]);
  });
}

// Whether all writes of what the lanes of a row read are ordered before that.
bool follows_writes(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes) {
  Order order(memory, access, row);
  const int units = units_of(memory, access.size), shift = __builtin_ctzll(memory.unit);
  return lanes.every([&](int lane) {
    const int64_t* first = memory.written + (lanes.offsets[lane] >> shift);
    for (int unit = 0; unit < units; ++unit) {
      if (!order.is_before(first[unit], access.thread(row, lane))) return false;
    }
    return true;
  });
}

// Whether all uses of what the lanes of a row overwrite are ordered before that.
bool follows_uses(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes) {
  Order order(memory, access, row);
  const int units = units_of(memory, access.size), shift = __builtin_ctzll(memory.unit);
  const auto follows = [&](const int64_t* epochs) {
    return lanes.every([&](int lane) {
      const int64_t *first = epochs + (lanes.offsets[lane] >> shift);
      for (int unit = 0; unit < units; ++unit) {
        if (!order.is_before(first[unit], access.thread(row, lane))) return false;
      }
      return true;
    });
  };
  return memory.every_column(follows) && follows(memory.written);
}

bool may_write(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes) {
  return follows_uses(memory, access, row, lanes) && are_writable(memory, access, lanes);
}

// The first of some accesses that nothing orders after an earlier one.
struct Racing {
  int64_t thread = -1;  // negative: none
  int64_t unit = 0, epoch = 0;

  bool any() const { return thread >= 0; }
  void note(int64_t its_thread, int64_t its_unit, int64_t its_epoch) {
    if (!any()) thread = its_thread, unit = its_unit, epoch = its_epoch;
  }
};

// What is wrong with a load that can be done nevertheless: its first lane that reads what nobody
// wrote, and races with writers.
struct Flaws {
  uint32_t used;  // bytes of a lane that count, a bit each
  int64_t row = -1;
  int lane = 0;
  Racing racing{};

  bool has_unwritten() const { return row >= 0; }
};

// Notes them; false if there are others.
bool find_flaws(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes,
                bool coherent, Flaws& flaws) {
  const int64_t* seen = access.seen(memory, row);
  const int units = units_of(memory, access.size);
  return lanes.every([&](int lane) {
    const int64_t offset = lanes.offsets[lane], first = unit_at(memory, offset);
    for (int byte = 0; byte < access.size; ++byte) {
      const uint8_t state = memory.state[offset + byte];
      if (state == kOutside) return false;
      if (state == kUnwritten && flaws.used >> byte & 1 && !flaws.has_unwritten()) {
        flaws.row = row, flaws.lane = lane;
      }
    }
    for (int64_t unit = first; !memory.unordered && unit < first + units; ++unit) {
      const int64_t epoch = memory.known(memory.written[unit]);
      if (epoch && !coherent) return false;
      const int64_t thread = access.thread(row, lane);
      if (unordered(seen, epoch, thread)) flaws.racing.note(thread, unit, epoch);
    }
    return true;
  });
}

// Counts what an access costs.
void count_all(Memory& memory, const Access& access, const Lanes* all, bool pairs) {
  if (memory.uncounted) return;
  std::memset(memory.cost, 0, sizeof memory.cost);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    kx::count(memory, all[row], access.size, pairs);
  }
}

// Loads what the lanes read: take(row, lanes). False, and nothing has changed, if there would be
// something to report that is not one of the flaws that permits(flaws) accepts.
template <class Permits, class Take>
bool load(Memory& memory, const Access& access, bool pairs, bool coherent, uint32_t used,
          Permits permits, Take take) {
  const Lanes* all = all_lanes(access);
  if (!all) return false;
  const auto every_row = [&](auto of) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      if (!of(row)) return false;
    }
    return true;
  };
  const bool allowed = with_bytes(access.size, [&](auto bytes) {
    return every_row(
        [&](int64_t row) { return may_read<bytes>(memory, access, row, all[row], coherent); });
  });
  if (!allowed) {
    Flaws flaws{used};
    const bool known = every_row([&](int64_t row) {
      return find_flaws(memory, access, row, all[row], coherent, flaws);
    });
    if (!known || !permits(flaws)) return false;
  }
  const int units = units_of(memory, access.size), shift = __builtin_ctzll(memory.unit);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    Reads reads(memory, access.warps.columns[row], access.seen(memory, row));
    if (!memory.unordered) all[row].every([&](int lane) {
      const int64_t first = all[row].offsets[lane] >> shift;
      const int64_t epoch = access.epoch(row, lane);
      for (int unit = 0; unit < units; ++unit) reads.note(first + unit, epoch);
      return true;
    });
    take(row, all[row]);
  }
  count_all(memory, access, all, pairs);
  return true;
}

// Races of a store with writers and with readers.
struct StoreRaces {
  Racing wrote, read;
};

// Notes them; false if there is anything else, or if a store that races with another changes nothing:
// changes(row, lane).
template <class Changes>
bool find_races(const Memory& memory, const Access& access, const Lanes* all, Changes changes,
                StoreRaces& races) {
  const int units = units_of(memory, access.size);
  const auto every_race = [&](const int64_t* epochs, auto of) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      const int64_t* seen = access.seen(memory, row);
      const bool allowed = all[row].every([&](int lane) {
        const int64_t first = unit_at(memory, all[row].offsets[lane]);
        for (int64_t unit = first; unit < first + units; ++unit) {
          const int64_t epoch = memory.known(epochs[unit]);
          if (!unordered(seen, epoch, access.thread(row, lane))) continue;
          if (!of(row, lane, unit)) return false;
        }
        return true;
      });
      if (!allowed) return false;
    }
    return true;
  };
  const bool allowed = every_race(memory.written, [&](int64_t row, int lane, int64_t unit) {
    races.wrote.note(access.thread(row, lane), unit, memory.known(memory.written[unit]));
    return changes(row, lane);
  });
  if (allowed) memory.every_column([&](const int64_t* read) {
    every_race(read, [&](int64_t row, int lane, int64_t unit) {
      if (changes(row, lane)) {
        races.read.note(access.thread(row, lane), unit, memory.known(read[unit]));
      }
      return !races.read.any();
    });
    return true;
  });
  return allowed;
}

// With whom lanes of a store share a word: nobody, lanes of their own warp, or others'.
enum class Shared { kNone, kWithin, kBeyond };

// Notes who stores to each word, if each has it for itself; if not, nothing has changed.
Shared claim(const Memory& memory, const Access& access, const Lanes* all) {
  static std::vector<int64_t> before;
  const int units = units_of(memory, access.size), shift = __builtin_ctzll(memory.unit);
  before.resize(access.warps.rows * kLanes * units);
  int64_t* kept = before.data();
  const auto every_lane = [&](auto act) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      const Lanes& lanes = all[row];
      lanes.every([&](int lane) {
        act(memory.written + (lanes.offsets[lane] >> shift), access.epoch(row, lane));
        return true;
      });
    }
  };
  every_lane([&](int64_t* written, int64_t epoch) {
    for (int unit = 0; unit < units; ++unit) {
      *kept++ = written[unit];
      written[unit] = epoch;
    }
  });
  bool shared = false, beyond = false;
  every_lane([&](const int64_t* written, int64_t epoch) {
    shared |= *written != epoch;
    beyond |= (*written ^ epoch) >> 5 != 0;
  });
  if (!shared) return Shared::kNone;
  for (int64_t row = access.warps.rows - 1; row >= 0; --row) {
    for (int lane = kLanes - 1; lane >= 0; --lane) {
      if (!all[row].has(lane)) continue;
      kept -= units;
      std::copy_n(kept, units, memory.written + (all[row].offsets[lane] >> shift));
    }
  }
  return beyond ? Shared::kBeyond : Shared::kWithin;
}

// Whether the memory has what every lane gives when all have given; if not, it is as it was.
template <class Changes, class Give>
bool agree(Memory& memory, const Access& access, const Lanes* all, Changes changes, Give give) {
  static std::vector<uint8_t> before;
  before.resize(access.warps.rows * kLanes * access.size);
  const auto at = [&](int64_t row, int lane) {
    return before.data() + (row * kLanes + lane) * access.size;
  };
  const auto every_lane = [&](auto act) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      const auto one = [&](int lane) {
        return act(row, lane, memory.data + all[row].offsets[lane]);
      };
      if (!all[row].every(one)) return false;
    }
    return true;
  };
  every_lane([&](int64_t row, int lane, const uint8_t* from) {
    std::memcpy(at(row, lane), from, access.size);
    return true;
  });
  for (int64_t row = 0; row < access.warps.rows; ++row) give(row, all[row]);
  if (every_lane([&](int64_t row, int lane, const uint8_t*) { return !changes(row, lane); })) {
    return true;
  }
  every_lane([&](int64_t row, int lane, uint8_t* to) {
    std::memcpy(to, at(row, lane), access.size);
    return true;
  });
  return false;
}

void mark_written(const Memory& memory, int size, const Lanes& lanes) {
  with_bytes(size, [&](auto bytes) {
    lanes.every([&](int lane) {
      std::memset(memory.state + lanes.offsets[lane], kWritten, bytes);
      return true;
    });
  });
}

// Stores what the lanes give: give(row, lanes), whatever may_write() says if it races in a way that
// permits(lanes) accepts. False as for load, and if two lanes of a warp give a word different values,
// so that changes(row, lane) holds when all is stored, or lanes of two warps give it any.
template <class Permits, class Changes, class Give>
bool store(Memory& memory, const Access& access, Permits permits, Changes changes, Give give) {
  const Lanes* all = all_lanes(access);
  if (!all) return false;
  const auto put = [&](int64_t row) {
    mark_written(memory, access.size, all[row]);
    give(row, all[row]);
  };
  if (memory.unordered) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      if (!are_writable(memory, access, all[row])) return false;
    }
    for (int64_t row = 0; row < access.warps.rows; ++row) put(row);
    count_all(memory, access, all, false);
    return true;
  }
  bool allowed = true;
  for (int64_t row = 0; allowed && row < access.warps.rows; ++row) {
    allowed = may_write(memory, access, row, all[row]);
  }
  if (!allowed && !permits(all)) return false;
  const Shared shared = claim(memory, access, all);
  if (shared == Shared::kBeyond) return false;
  if (shared == Shared::kWithin && !agree(memory, access, all, changes, give)) return false;
  const int units = units_of(memory, access.size), shift = __builtin_ctzll(memory.unit);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    all[row].every([&](int lane) {
      const int64_t first = all[row].offsets[lane] >> shift;
      for (int unit = 0; shared != Shared::kNone && unit < units; ++unit) {
        memory.written[first + unit] = access.epoch(row, lane);
      }
      memory.touch(first, units);
      return true;
    });
    put(row);
  }
  count_all(memory, access, all, false);
  return true;
}

// Copies `bytes` bytes of each lane: copy(lane, bytes).
template <class Copy>
void each_lane(const Lanes& lanes, int bytes, Copy copy) {
  with_bytes(bytes, [&](auto constant) {
    lanes.every([&](int lane) {
      copy(lane, constant);
      return true;
    });
  });
}

}  // namespace

// out: [n, 32] or [n, 32, elements], 0xFF where a lane takes no part.
extern "C" int kx_load(Memory* memory, const Warps* warps, const Array* address, int address_bytes,
                       const Array* mask, int masked, int64_t stamp, int size, int pairs,
                       int coherent, const Array* out) {
  if (!is_plain(address, address_bytes, *warps)) return 1;
  const Access access{*warps, Rows(address), address_bytes, 0, rows_of(mask, masked), size, stamp};
  std::memset(out->data, 0xFF, warps->rows * kLanes * size);
  const auto permits = [](const Flaws&) { return false; };
  return !load(*memory, access, pairs, coherent, ~0u, permits, [&](int64_t row, const Lanes& lanes) {
    each_lane(lanes, size, [&](int lane, auto bytes) {
      char* to = out->data + (row * kLanes + lane) * bytes;
      std::memcpy(to, memory->data + lanes.offsets[lane], bytes);
    });
  });
}

// values: [n, 32] or [n, 32, elements].
extern "C" int kx_store(Memory* memory, const Warps* warps, const Array* address, int address_bytes,
                        const Array* mask, int masked, int64_t stamp, int size, const Array* values,
                        int element) {
  const int dimensions = size > element ? 3 : 2;
  if (!is_plain(address, address_bytes, *warps) || values->dimensions != dimensions ||
      values->shape[0] != warps->rows || values->shape[1] != kLanes) {
    return 1;
  }
  const Access access{*warps, Rows(address), address_bytes, 0, rows_of(mask, masked), size, stamp};
  const Rows from(values);
  const int64_t step = size > element ? values->strides[2] : 0;
  const auto permits = [](const Lanes*) { return false; };
  const auto changes = [&](int64_t row, int lane) {
    const uint8_t* to = memory->data + placed[row].offsets[lane];
    for (int done = 0; done < size; done += element) {
      if (std::memcmp(to + done, from.at(row, lane) + done / element * step, element)) return true;
    }
    return false;
  };
  return !store(*memory, access, permits, changes, [&](int64_t row, const Lanes& lanes) {
    for (int done = 0; done < size; done += element) {
      each_lane(lanes, element, [&](int lane, auto bytes) {
        const char* value = from.at(row, lane) + done / bytes * step;
        std::memcpy(memory->data + lanes.offsets[lane] + done, value, bytes);
      });
    }
  });
}

// Whether all uses of what a store of `size` bytes per lane would overwrite, or all writes of what a
// load would read, are ordered before what the warps do now; nothing is noted. 0: they are.
extern "C" int kx_follows(Memory* memory, const Warps* warps, const Array* address,
                          int address_bytes, const Array* mask, int masked, int64_t stamp, int size,
                          int stores) {
  if (memory->unordered) return 0;
  if (!is_plain(address, address_bytes, *warps)) return 1;
  const Access access{*warps, Rows(address), address_bytes, 0, rows_of(mask, masked), size, stamp};
  const Lanes* all = all_lanes(access);
  if (!all) return 1;
  for (int64_t row = 0; row < warps->rows; ++row) {
    const bool follows = stores ? follows_uses(*memory, access, row, all[row])
                                : follows_writes(*memory, access, row, all[row]);
    if (!follows) return 1;
  }
  return 0;
}

// Whether no thread has used, since the time `begun`, the first unit of what each lane accesses. 0: none
// has.
extern "C" int kx_unused_since(Memory* memory, const Warps* warps, const Array* address,
                               int address_bytes, const Array* mask, int masked, int64_t begun,
                               int size) {
  if (memory->unordered) return 0;
  if (!is_plain(address, address_bytes, *warps)) return 1;
  const Access access{*warps, Rows(address), address_bytes, 0, rows_of(mask, masked), size, 0};
  const Lanes* all = all_lanes(access);
  if (!all) return 1;
  const int64_t threads = memory->warps * kLanes;
  for (int64_t row = 0; row < warps->rows; ++row) {
    const auto is_old = [&](const int64_t* epochs) {
      return all[row].every([&](int lane) {
        const int64_t epoch = epochs[unit_at(*memory, all[row].offsets[lane])];
        return epoch >> kTime < begun || (epoch & kThread) >= threads;
      });
    };
    if (!is_old(memory->written) || !memory->every_column(is_old)) return 1;
  }
  return 0;
}

// Matrices of 8 rows of 16 bytes whose addresses are 8 lanes' each: ldmatrix and stmatrix. The
// bytes go through all lanes of the warp, so that its own earlier accesses are others' to it.

namespace {

// The lane that a unit of a row belongs to: of two, the one with its last element.
int lane_of(int line, int64_t unit, int units, bool transposed) {
  if (!transposed) return line % 8 * 4 + unit * 4 / units;
  const int element = ((unit + 1) * 16 / units - 1) / 2;
  return element * 4 + line % 8 / 2;
}

bool may_move(const Memory& memory, const Access& access, int64_t row, const Lanes& lanes,
              bool stores) {
  if (memory.unordered) {
    return stores ? are_writable(memory, access, lanes) : is_inside(memory, access, lanes);
  }
  const int64_t* seen = access.seen(memory, row);
  const int units = units_of(memory, access.size);
  for (int line = 0; line < access.lanes; ++line) {
    const int64_t offset = lanes.offsets[line];
    if (!stores && !is_written<16>(memory.state + offset)) return false;
    for (int unit = 0; unit < units; ++unit) {
      const int64_t at = unit_at(memory, offset) + unit;
      if (unordered(seen, memory.known(memory.written[at]), -1)) return false;
      const auto follows = [&](const int64_t* read) {
        return !unordered(seen, memory.known(read[at]), -1);
      };
      if (stores && !memory.every_column(follows)) return false;
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
  const Lanes* all = all_lanes(access);
  if (!all) return false;
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    if (!may_move(memory, access, row, all[row], stores)) return false;
  }
  const int units = units_of(memory, access.size);
  for (int64_t row = 0; row < access.warps.rows; ++row) {
    const Lanes& lanes = all[row];
    Reads reads(memory, access.warps.columns[row], access.seen(memory, row));
    for (int line = 0; line < access.lanes; ++line) {
      const int64_t first = unit_at(memory, lanes.offsets[line]);
      for (int unit = 0; !memory.unordered && unit < units; ++unit) {
        const int64_t epoch = access.epoch(row, lane_of(line, unit, units, transposed));
        if (stores) {
          memory.written[first + unit] = epoch;
        } else {
          reads.note(first + unit, epoch);
        }
      }
      if (!stores) continue;
      memory.touch(first, units);
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
  }
  count_all(memory, access, all, false);
  return true;
}

}  // namespace

// registers: uint32 [n, matrices, 32], written by a load.
extern "C" int kx_move_matrices(Memory* memory, const Warps* warps, const Array* address,
                                int address_bytes, int64_t stamp, int matrices, int transposed,
                                const Array* registers, int stores) {
  if (!is_plain(address, address_bytes, *warps)) return 1;
  const Access access{*warps, Rows(address), address_bytes, 0, kEvery, 16, stamp, 8 * matrices};
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
  const int withheld = call.withheld >> (stores ? 3 : 0) & (1 << which);
  return withheld || !call.set.warps[which] ? nullptr : call.machine.memories[which];
}

// Clocks.stamp() of the instruction.
int64_t stamp_of(const Call& call) {
  const int64_t site = call.instruction.site + 1;
  return call.now << kTime | (site < 1 << kSiteBits ? site : 0) << kThreadBits;
}

// The bytes of an address that is the sum of two pairs of words: slots 0 and 7, 8 and 9, of which any
// but the first may be missing.
constexpr int kPairs = 16;

// Where addresses of 8 bytes lie, until the next access: of a pair of words they are made.
Rows joined(const Call& call) {
  static std::vector<uint64_t> made;
  made.assign(call.set.rows * kLanes, 0);
  for (const int low : {0, 8}) {
    const int high = low ? 9 : 7;
    for (const int slot : {low, high}) {
      if (!call.has(slot)) continue;
      const Rows words = call.operand(slot);
      for (int64_t row = 0; row < call.set.rows; ++row) {
        uint64_t* to = made.data() + row * kLanes;
        for (int lane = 0; lane < kLanes; ++lane) {
          const uint64_t word = kx::load<uint32_t>(words.at(row, lane));
          to[lane] += slot == high ? word << 32 : word;
        }
      }
    }
  }
  return Rows(reinterpret_cast<char*>(made.data()), kLanes * sizeof(uint64_t), sizeof(uint64_t));
}

Access access_of(const Call& call, int size) {
  const int32_t* numbers = call.instruction.numbers;
  const Rows mask(reinterpret_cast<char*>(const_cast<uint8_t*>(call.on)), kLanes, 1);
  const bool pairs = numbers[1] == kPairs;
  return {*call.set.warps[numbers[0]], pairs ? joined(call) : call.operand(0), pairs ? 8 : numbers[1],
          call.instruction.offset, mask, size, stamp_of(call)};
}

bool counted(const Call& call, const Memory& memory) {
  if (memory.uncounted) return true;
  int64_t* costs = call.machine.costs + (1 + kx::kCosts) * call.instruction.site;
  costs[0] += 1;
  for (int i = 0; i < kx::kCosts; ++i) costs[i + 1] += memory.cost[i];
  return true;
}

// Whether races of an access are such that Python may report them later, and there is room for them.
bool may_race(const Call& call) {
  const bool withheld = call.withheld >> 6 & (1 << call.instruction.numbers[0]);
  return !withheld && call.machine.races->count + 2 <= kx::kRaces;
}

void note_race(const Call& call, kx::Raced raced, const Racing& racing) {
  if (!racing.any()) return;
  kx::Races& races = *call.machine.races;
  races.first[races.count++] = {call.instruction.numbers[0], call.instruction.site,
                                static_cast<int32_t>(racing.thread), raced, racing.unit,
                                racing.epoch};
}

// The bytes of an element, up to 8, that nobody wrote.
uint16_t unwritten(const uint8_t* state, int element, uint32_t used) {
  uint16_t mark = 0;
  for (int byte = 0; byte < std::min(element, 8); ++byte) {
    mark |= (state[byte] == kUnwritten && used >> byte & 1) << byte;
  }
  return mark;
}

// Marks the registers that a load fills.
void mark(const Call& call, const Memory& memory, const Access& access, const Flaws& flaws) {
  const int element = call.instruction.numbers[2], elements = call.instruction.numbers[3];
  const int written = call.handing.written();
  const int64_t first = placed[flaws.row].offsets[flaws.lane];
  const kx::Origin origin{call.instruction.numbers[0], call.instruction.site,
                          static_cast<int32_t>(access.warps.places[flaws.row]), flaws.lane,
                          first - access.warps.base[flaws.row] - flaws.lane * access.warps.lane};
  for (int i = 0; i < written; ++i) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      uint16_t values[kLanes] = {};
      uint8_t marked[kLanes] = {};
      placed[row].every([&](int lane) {
        const uint8_t* state = memory.state + placed[row].offsets[lane];
        for (int part = 0; part < elements; ++part) {
          const uint16_t found = unwritten(state + part * element, element, flaws.used >> part * element);
          if (written == elements ? part == i : found != 0) {
            values[lane] = written == elements ? found : kx::kComputed;
          }
        }
        marked[lane] = values[lane] != 0;
        return true;
      });
      call.handing.load(i, row, values, marked, origin);
    }
  }
}

// numbers: memory, bytes of an address (or kPairs), of an element, elements, whether they are signed, whether
// the load is coherent, which bytes count. A register may be wider than an element.
bool ld(const Call& call, const kx::Named&) {
  Memory* memory = memory_of(call, false);
  if (!memory) return false;
  const int32_t* numbers = call.instruction.numbers;
  const int element = numbers[2], elements = numbers[3], shift = numbers[4] ? 64 - 8 * element : 0;
  const auto take = [&](int64_t row, const Lanes& lanes) {
    for (int i = 0; i < elements; ++i) {
      const Rows to = call.operand(i + 1);
      const uint8_t* const first = memory->data + i * element;
      each_lane(lanes, element, [&](int lane, auto bytes) {
        const uint8_t* from = first + lanes.offsets[lane];
        if (to.lane == bytes) {
          std::memcpy(to.at(row, lane), from, bytes);
          return;
        }
        int64_t value = 0;
        std::memcpy(&value, from, std::min<int>(bytes, sizeof value));
        value = static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
        std::memcpy(to.at(row, lane), &value, to.lane);
      });
    }
  };
  const Access access = access_of(call, element * elements);
  Flaws found{0};
  const auto permits = [&](const Flaws& flaws) {
    found = flaws;
    return (!flaws.has_unwritten() || call.handing.can_load()) &&
           (!flaws.racing.any() || may_race(call));
  };
  if (!load(*memory, access, true, numbers[5], numbers[6], permits, take)) return false;
  if (found.has_unwritten()) mark(call, *memory, access, found);
  note_race(call, kx::Raced::kReadWrote, found.racing);
  return counted(call, *memory);
}

// numbers: as for ld, without the last three. Marked values are stored by Python, which keeps where
// they came from.
bool st(const Call& call, const kx::Named&) {
  Memory* memory = memory_of(call, true);
  if (!memory || call.handing.stores()) return false;
  const int element = call.instruction.numbers[2], elements = call.instruction.numbers[3];
  const auto give = [&](int64_t row, const Lanes& lanes) {
    for (int i = 0; i < elements; ++i) {
      const Rows from = call.operand(i + 1);
      uint8_t* const first = memory->data + i * element;
      each_lane(lanes, element, [&](int lane, auto bytes) {
        std::memcpy(first + lanes.offsets[lane], from.at(row, lane), bytes);
      });
    }
  };
  const Access access = access_of(call, element * elements);
  StoreRaces races;
  const auto changes = [&](int64_t row, int lane) {
    const uint8_t* to = memory->data + placed[row].offsets[lane];
    for (int i = 0; i < elements; ++i) {
      if (std::memcmp(to + i * element, call.operand(i + 1).at(row, lane), element)) return true;
    }
    return false;
  };
  const auto permits = [&](const Lanes* all) {
    for (int64_t row = 0; row < access.warps.rows; ++row) {
      if (!are_writable(*memory, access, all[row])) return false;
    }
    if (!find_races(*memory, access, all, changes, races)) return false;
    return !(races.wrote.any() || races.read.any()) || may_race(call);
  };
  if (!store(*memory, access, permits, changes, give)) return false;
  note_race(call, kx::Raced::kWrittenWrote, races.wrote);
  note_race(call, kx::Raced::kWrittenRead, races.read);
  return counted(call, *memory);
}

// numbers: memory, bytes of an address, matrices, whether they are transposed, whether Python looks at
// warps of which not all lanes are active.
template <bool kStores>
bool matrices(const Call& call, const kx::Named&) {
  Memory* memory = memory_of(call, false);
  if (!memory || (call.on && call.instruction.numbers[4])) return false;
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
