// Marks of registers that hold what nobody wrote: marks.py, undefined.py and bitmarks.py, which have
// the rules. Compiled code hands marks on; where there would be something to report it leaves the
// instruction to Python.
#pragma once
#include <cstdint>

#include "interpreter.hpp"

namespace kx {

constexpr uint16_t kNinth = 0x100, kComputed = 0x1FF;

// native_layout.py has the same fields in the same order.

// The load that a mark comes from: its first lane that read what nobody wrote.
struct Origin {
  int32_t loaded, site, place, lane;
  int64_t address;
};

struct Marks {
  uint16_t* marks;  // [registers, warps, 32]; null until Python has made the first
  int64_t* marked;  // [registers]: in how many warps each has a mark
  Origin* origins;  // [registers]
  // By slot
  const int32_t* registers;  // negative: none
  const uint16_t* seen;      // of a mark, by who reads the slot
  const int32_t* octets;     // its bytes; 0: a predicate
  const int32_t* expected;   // loads that warps wait for and that fill it
  int64_t warps;
  int64_t total;      // of `marked`
  int64_t expecting;  // loads that warps wait for

  // Of a slot's register in a warp, [32].
  uint16_t* of(int slot, int64_t place) const {
    return marks + (registers[slot] * warps + place) * kLanes;
  }
  bool is_marked(int slot) const { return registers[slot] >= 0 && marked[registers[slot]]; }
};

// By kUnknown, Python executes the instruction while any register is marked; by kPython, while one of
// those that it uses is.
enum class Rule : int32_t {
  kUnknown, kPython, kCopies, kSelects, kComputes, kAnd, kOr, kXor, kShl, kShr, kBfe, kPrmt,
};

constexpr int kReads = 8, kDecides = 2, kWrites = 8;

// The slots that an instruction uses, up to the first negative one of each kind.
struct Uses {
  Rule rule;
  int32_t reads[kReads], decides[kDecides], writes[kWrites];
};

// The lanes of a set, [rows, 32], null for all, that are active, and for which a guard holds too. The
// slot of the guard is negative if there is none.
struct Guard {
  int slot;
  const uint8_t *active, *holds;
};

// What one instruction does with marks: made before it is executed.
class Handing {
 public:
  // uses: null while there is no room for marks.
  Handing(Marks& marks, const Uses* uses, const Machine& machine, const Set& set,
          const Guard& guard)
      : marks_(marks), uses_(uses), machine_(machine), set_(set), guard_(guard) {}

  // Whether any register that the instruction uses is marked.
  bool is_needed() const;
  // Before it is executed; false if Python has to execute it.
  bool begin();
  // After it was.
  void end();
  // Whether it stores marked values.
  bool stores() const { return stores_; }
  // Whether Python has made room for marks, and a load has a register to mark.
  bool can_load() const { return marks_.marks && uses_->writes[0] >= 0; }
  // Registers that the instruction writes.
  int written() const;
  // Marks a register that a load has written, in lanes of a row.
  void load(int write, int64_t row, const uint16_t* values, const uint8_t* lanes,
            const Origin& origin);

 private:
  int64_t place(int64_t row) const { return set_.first + row * set_.step; }
  const uint8_t* lanes(int64_t row) const {
    return guard_.holds ? guard_.holds + row * kLanes : nullptr;
  }
  bool any(int slot, uint16_t seen, const uint8_t* lanes) const;
  void put(int slot, int64_t row, const uint16_t* values, const uint8_t* lanes);
  void mix();
  void mix_row(Rule rule, int64_t row, uint16_t* mixed) const;
  bool follows_bits() const;

  Marks& marks_;
  const Uses* uses_;
  const Machine& machine_;
  const Set& set_;
  const Guard guard_;
  int found_ = -1;  // the first slot that is read and marked
  bool stores_ = false;
};

}  // namespace kx
