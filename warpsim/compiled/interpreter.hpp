// What instructions with a compiled form act on, and how they find their operands.
#pragma once
#include <cstdint>

#include "array.hpp"

namespace kx {

constexpr int kLanes = 32;
constexpr int kSlots = 10;
constexpr int kNumbers = 7;
constexpr int kRaces = 256;
constexpr int kCosts = 8;

struct Memory;  // access.cpp
struct Warps;
struct Marks;  // marks.hpp
struct Synchronisation;
struct Uses;
class Handing;

// machine/core/native_layout.py has the same fields in the same order.

// A register or any other operand, of all warps.
struct Slot {
  char* data;
  int64_t row;   // bytes from a warp to the next
  int64_t lane;  // the same of lanes: more than the operand's own in a part of a register
};

struct Instruction {
  int32_t operation;  // its index; negative: Python's
  int32_t guard;      // slot, or negative
  int32_t negated;
  int32_t site;
  int32_t uniform;  // whether it is executed for all lanes, whichever are active
  int32_t signs;    // what is done to its sources first: kx::Sign, 4 bits each
  int32_t slots[kSlots];  // destinations first; negative: none
  int32_t numbers[kNumbers];
  int64_t offset;  // of an address
};

// What SASS does to a source as it reads it.
enum Sign : int32_t { kNegated = 1, kInverted = 2, kMagnitude = 4, kFlipped = 8 };
constexpr int kSignBits = 4;

// The instructions of a block.
struct Code {
  const Instruction* instructions;
  const Uses* uses;  // null until there is room for marks
  int64_t count;
};

// Whether lanes may have to wait at a block, or others be let in first: what Python decides.
// kGate: where they may have to wait, for what the block's only instruction tells.
enum class Held : int32_t { kNever, kInPart, kAlways, kGate };

// A block, by the number of its first instruction. There is one more after the last instruction,
// held always.
struct Block {
  const Code* code;  // null until Python has made it
  int32_t last;      // the number after the last instruction's
  int32_t weight;    // how much of a turn it takes
  Held held;         // kInPart: unless all lanes are active
  int32_t joins;     // whether lanes that parted may meet here
  int32_t guard;     // slot by which it branches; negative: it does not
  int32_t negated;
  int32_t target;    // where it goes; negative: as Python decides
  int32_t following;  // the same where the guard does not hold
};

// Where warps are, and what they have left of their turn.
struct Turn {
  int64_t block, at;  // by their first instruction, and its instructions from 0 on
  int64_t turn, polls, quantum;
  int64_t lanes;  // active ones
  int64_t meets;  // whether lanes that parted are to meet any of them
  int64_t steps;  // warp instructions of the blocks that were entered
  int64_t now;    // of the clocks
};

// What raced: an access, and the earlier one.
enum class Raced : int32_t { kReadWrote, kWrittenWrote, kWrittenRead };

// An access to a memory by a thread that raced with one to a unit of its history at an epoch.
struct Race {
  int32_t memory, site, thread;
  Raced raced;
  int64_t unit, epoch;
};

// Those that Python has yet to report.
struct Races {
  int64_t count;
  Race first[kRaces];
};

struct Machine {
  const Slot* slots;
  Memory* memories[3];  // shared, global, local
  int64_t* entered;     // [sites, 3], by the first instruction of a block: warps, lanes, and which
                        // warps of a CTA, a bit each
  int64_t* guarded;     // [sites, 3]: executions, warps with a lane for which a guard holds, lanes
  int64_t* costs;       // [sites, 1 + kCosts]: accesses, and what they cost
  uint8_t* lanes;       // [warps, 32], for lanes for which a guard holds
  uint32_t* results;    // [warps, 32], for what may yet have to be left to Python
  Marks* marks;
  Races* races;
  Synchronisation* sync;  // null where Python is to see all of it
};

// Warps that execute together.
struct Set {
  int64_t first;
  int64_t step;
  int64_t rows;
  int64_t indices;        // which warps of a CTA, a bit each
  const Warps* warps[3];  // by memory; null until Python has made the first access
};

struct Call {
  const Machine& machine;
  const Set& set;
  const Instruction& instruction;
  const uint8_t* on;  // active lanes, [rows, 32]; null: all
  int64_t& now;
  int withheld;  // accesses that Python has to look at: bits as in interpreter.py
  Handing& handing;

  Rows operand(int index) const {
    const Slot& slot = machine.slots[instruction.slots[index]];
    return Rows(slot.data + set.first * slot.row, set.step * slot.row, slot.lane);
  }
  bool has(int index) const { return instruction.slots[index] >= 0; }
  const uint8_t* active(int64_t row) const { return on ? on + row * kLanes : nullptr; }
};

struct Named;

// Executes an instruction; false if Python has to, and then nothing has changed.
using Operation = bool (*)(const Call&, const Named&);

constexpr int kSources = 4;

struct Named {
  const char* name;
  Operation operation;
  // What it does to `count` lanes, a multiple of 32.
  void (*lanes)(int count, void* result, const void* const* sources);
  int result;             // bytes
  int sources[kSources];  // the same of each; 0: none
};

struct Table {
  const Named* first;
  int count;
};

extern const Table kArithmetic, kReals, kAccesses, kSynchronises;

}  // namespace kx
