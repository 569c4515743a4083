// How marks are handed on from the registers that an instruction reads to those that it writes.
#include "marks.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

using kx::kComputed;
using kx::kLanes;
using kx::kNinth;
using kx::Marks;
using kx::Rule;

// Of the warps of a set, until the next instruction, [rows, 32].
std::vector<uint16_t> mixed_marks;

const uint16_t kNone[kLanes] = {};

bool any_of(const uint16_t* marks) {
  uint16_t found = 0;
  for (int lane = 0; lane < kLanes; ++lane) found |= marks[lane];
  return found != 0;
}

// A mark as one sees it who reads some of the bytes.
uint16_t seen_of(uint16_t mark, uint16_t seen) {
  const uint16_t read = mark & seen;
  return read ? read | (mark & kNinth) : 0;
}

// The bits of the bytes that a mark names, and the other way round.
uint64_t bits_of(uint16_t mark) {
  uint64_t bits = 0;
  for (int byte = 0; byte < 8; ++byte) bits |= (mark >> byte & 1) * (uint64_t(0xFF) << 8 * byte);
  return bits;
}

uint16_t bytes_of(uint64_t bits) {
  uint16_t mark = 0;
  for (int byte = 0; byte < 8; ++byte) mark |= (bits >> 8 * byte & 0xFF ? 1 : 0) << byte;
  return mark;
}

// An operand of a warp: its marks, and what it holds.
struct Operand {
  const uint16_t* marks = kNone;
  uint16_t seen = 0;
  const char* data = nullptr;
  int64_t lane_bytes = 0;
  int octets = 0;

  Operand() = default;
  Operand(const Marks& all, const kx::Machine& machine, int slot, int64_t place)
      : marks(all.is_marked(slot) ? all.of(slot, place) : kNone), seen(all.seen[slot]),
        data(machine.slots[slot].data + place * machine.slots[slot].row),
        lane_bytes(machine.slots[slot].lane), octets(all.octets[slot]) {}

  uint16_t mark(int lane) const { return seen_of(marks[lane], seen); }

  // As 64 bits; all ones or none of a predicate.
  uint64_t value(int lane) const {
    const char* at = data + lane * lane_bytes;
    if (!octets) return *at ? ~uint64_t(0) : 0;
    uint64_t bits = 0;
    std::memcpy(&bits, at, octets);
    return bits;
  }
};

// Bits of a result that depend on marked bits: those that the other operand does not absorb.
uint64_t unabsorbed(const Operand& a, const Operand& b, int lane, bool absorbs) {
  const uint64_t flip = absorbs ? ~uint64_t(0) : 0;
  const uint64_t x = a.value(lane) ^ flip, y = b.value(lane) ^ flip;
  const uint64_t unknown_a = bits_of(a.mark(lane)), unknown_b = bits_of(b.mark(lane));
  return (unknown_a & (y | unknown_b)) | (unknown_b & (x | unknown_a));
}

uint16_t picked(uint16_t a, uint16_t b, uint64_t selector) {
  const uint16_t both = (a & 0xF) | (b & 0xF) << 4;
  uint16_t mark = 0;
  for (int position = 0; position < 4; ++position) {
    mark |= (both >> (selector >> 4 * position & 7) & 1) << position;
  }
  return mark;
}

// What a rule for bits makes of a lane's operands.
uint16_t moved(Rule rule, const Operand* operands, int lane) {
  const auto limited = [&](int i) { return std::min<uint64_t>(operands[i].value(lane), 63); };
  const uint64_t bits = bits_of(operands[0].mark(lane));
  switch (rule) {
    case Rule::kAnd: return bytes_of(unabsorbed(operands[0], operands[1], lane, false));
    case Rule::kOr: return bytes_of(unabsorbed(operands[0], operands[1], lane, true));
    case Rule::kXor: return bytes_of(bits | bits_of(operands[1].mark(lane)));
    case Rule::kShl: return bytes_of(bits << limited(1));
    case Rule::kShr: return bytes_of(bits >> limited(1));
    case Rule::kBfe: return bytes_of(bits >> limited(1) & ((uint64_t(1) << limited(2)) - 1));
    default:
      return picked(operands[0].mark(lane), operands[1].mark(lane), operands[2].value(lane));
  }
}

uint16_t mixed_of(Rule rule, const Operand* operands, int lane) {
  if (rule == Rule::kSelects) {
    if (operands[2].mark(lane)) return kComputed;
    return operands[operands[2].value(lane) ? 0 : 1].mark(lane);
  }
  const uint16_t mark = moved(rule, operands, lane);
  return mark ? mark | kNinth : 0;
}

}  // namespace

namespace kx {

// Calls of(slot, index) for each; false as soon as one of the calls is.
template <int kCount, class Of>
static bool each_slot(const int32_t (&slots)[kCount], Of of) {
  for (int i = 0; i < kCount && slots[i] >= 0; ++i) {
    if (!of(slots[i], i)) return false;
  }
  return true;
}

bool Handing::is_needed() const {
  const auto plain = [&](int slot, int) { return !marks_.is_marked(slot); };
  return uses_->rule == Rule::kUnknown ||
         !(each_slot(uses_->reads, plain) && each_slot(uses_->decides, plain) &&
           each_slot(uses_->writes, plain));
}

// Whether any of some lanes of the set, null for all, sees a mark of a slot.
bool Handing::any(int slot, uint16_t seen, const uint8_t* lanes) const {
  if (!marks_.is_marked(slot)) return false;
  for (int64_t row = 0; row < set_.rows; ++row) {
    const uint16_t* marks = marks_.of(slot, place(row));
    const uint8_t* on = lanes ? lanes + row * kLanes : nullptr;
    uint16_t found = 0;
    for (int lane = 0; lane < kLanes; ++lane) found |= !on || on[lane] ? marks[lane] : 0;
    if (found & seen) return true;
  }
  return false;
}

bool Handing::begin() {
  const auto decided = [&](int slot, int) {
    return !any(slot, 0xFFFF, slot == guard_.slot ? guard_.active : guard_.holds);
  };
  if (uses_->rule <= Rule::kPython || !each_slot(uses_->decides, decided)) return false;
  each_slot(uses_->reads, [&](int slot, int) {
    if (any(slot, marks_.seen[slot], guard_.holds)) found_ = slot;
    return found_ < 0;
  });
  if (uses_->writes[0] < 0) {
    stores_ = found_ >= 0;
    return !stores_ || uses_->rule == Rule::kCopies;
  }
  if (found_ >= 0) {
    mix();
    return true;
  }
  each_slot(uses_->writes, [&](int slot, int) {
    if (marks_.is_marked(slot)) {
      for (int64_t row = 0; row < set_.rows; ++row) put(slot, row, kNone, lanes(row));
    }
    return true;
  });
  return true;
}

void Handing::end() {
  if (found_ < 0 || uses_->writes[0] < 0) return;
  const Origin origin = marks_.origins[marks_.registers[found_]];
  each_slot(uses_->writes, [&](int slot, int) {
    if (marks_.registers[slot] < 0) return true;
    marks_.origins[marks_.registers[slot]] = origin;
    for (int64_t row = 0; row < set_.rows; ++row) {
      put(slot, row, mixed_marks.data() + row * kLanes, lanes(row));
    }
    return true;
  });
}

// Gives a register of a row these marks, in some lanes; null: in all.
void Handing::put(int slot, int64_t row, const uint16_t* values, const uint8_t* lanes) {
  uint16_t* marks = marks_.of(slot, place(row));
  const int before = any_of(marks);
  for (int lane = 0; lane < kLanes; ++lane) {
    marks[lane] = !lanes || lanes[lane] ? values[lane] : marks[lane];
  }
  const int more = any_of(marks) - before;
  marks_.marked[marks_.registers[slot]] += more;
  marks_.total += more;
}

// Whether the rule for bits holds, for all lanes alike: not if what it shifts or picks by is marked.
bool Handing::follows_bits() const {
  const auto unmarked = [&](int index) {
    const int slot = uses_->reads[index];
    return slot < 0 || !any(slot, marks_.seen[slot], nullptr);
  };
  switch (uses_->rule) {
    case Rule::kShl:
    case Rule::kShr:
    case Rule::kBfe: return unmarked(1) && unmarked(2);
    default: return unmarked(2);
  }
}

void Handing::mix() {
  mixed_marks.resize(std::max<size_t>(mixed_marks.size(), set_.rows * kLanes));
  const bool whole = uses_->rule >= Rule::kAnd && !follows_bits();
  for (int64_t row = 0; row < set_.rows; ++row) {
    mix_row(whole ? Rule::kComputes : uses_->rule, row, mixed_marks.data() + row * kLanes);
  }
}

// The marks of a result.
void Handing::mix_row(Rule rule, int64_t row, uint16_t* mixed) const {
  if (rule >= Rule::kAnd || rule == Rule::kSelects) {
    Operand operands[3];
    each_slot(uses_->reads, [&](int slot, int index) {
      if (index < 3) operands[index] = Operand(marks_, machine_, slot, place(row));
      return true;
    });
    for (int lane = 0; lane < kLanes; ++lane) mixed[lane] = mixed_of(rule, operands, lane);
    return;
  }
  std::memset(mixed, 0, kLanes * sizeof *mixed);
  each_slot(uses_->reads, [&](int slot, int) {
    if (!marks_.is_marked(slot)) return true;
    const uint16_t *marks = marks_.of(slot, place(row)), seen = marks_.seen[slot];
    for (int lane = 0; lane < kLanes; ++lane) mixed[lane] |= seen_of(marks[lane], seen);
    return true;
  });
  if (rule == Rule::kCopies) return;
  for (int lane = 0; lane < kLanes; ++lane) mixed[lane] = mixed[lane] ? kComputed : 0;
}

int Handing::written() const {
  int count = 0;
  each_slot(uses_->writes, [&](int, int) { return ++count; });
  return count;
}

void Handing::load(int write, int64_t row, const uint16_t* values, const uint8_t* lanes,
                   const Origin& origin) {
  const int slot = uses_->writes[write];
  if (marks_.registers[slot] < 0) return;
  marks_.origins[marks_.registers[slot]] = origin;
  put(slot, row, values, lanes);
}

}  // namespace kx
