// Executes the instructions of blocks that have a compiled form, one after the other, each for all
// warps of a set, and block after block as long as all of its lanes go the same way.
#include "interpreter.hpp"

#include <cstring>
#include <initializer_list>

#include "marks.hpp"

namespace {

using kx::kLanes;

const kx::Named* named(int index) {
  for (const kx::Table* table : {&kx::kArithmetic, &kx::kReals, &kx::kAccesses, &kx::kSynchronises}) {
    if (index < table->count) return table->first + index;
    index -= table->count;
  }
  return nullptr;
}

bool uses_any(const kx::Instruction& instruction, const int32_t* expected) {
  for (const int32_t slot : instruction.slots) {
    if (slot >= 0 && expected[slot]) return true;
  }
  return instruction.guard >= 0 && expected[instruction.guard];
}

struct Guarded {
  int64_t warps = 0;
  int64_t lanes = 0;
};

// For which of the active lanes a guard holds, also as bytes in `on`, [rows, 32], if that is given.
Guarded hold(const kx::Machine& machine, const kx::Set& set, int slot, int negated,
             const uint8_t* active, uint8_t* on) {
  const kx::Slot& guard = machine.slots[slot];
  Guarded found;
  uint8_t unused[kLanes];
  for (int64_t row = 0; row < set.rows; ++row) {
    const char* holds = guard.data + (set.first + row * set.step) * guard.row;
    uint8_t* to = on ? on + row * kLanes : unused;
    int lanes = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      to[lane] = (holds[lane] != negated) & (active ? active[row * kLanes + lane] : 1);
      lanes += to[lane];
    }
    found.lanes += lanes;
    found.warps += lanes != 0;
  }
  return found;
}

// Executes the instructions of a block from `at` on; returns the index of the first one that Python
// has to execute, or their number. active: lanes, [rows, 32]; null: all.
int64_t execute(const kx::Machine& machine, const kx::Set& set, const kx::Code& code, int64_t at,
                const uint8_t* active, int64_t& now, int withheld) {
  kx::Marks& marks = *machine.marks;
  for (; at < code.count; ++at) {
    const kx::Instruction& each = code.instructions[at];
    if (each.operation < 0 || (marks.expecting && uses_any(each, marks.expected))) return at;
    const kx::Uses* uses = code.uses ? code.uses + at : nullptr;
    const bool has_guard = each.guard >= 0;
    const uint8_t* const every = each.uniform ? nullptr : active;
    const Guarded guarded = has_guard ? hold(machine, set, each.guard, each.negated, every, machine.lanes) : Guarded();
    const uint8_t* on = has_guard ? machine.lanes : every;
    const Guarded counted = has_guard && every != active ? hold(machine, set, each.guard, each.negated, active, nullptr) : guarded;
    kx::Handing handing(marks, uses, machine, set, {each.guard, every, on});
    const bool marked = marks.total && handing.is_needed();
    if (marked && !handing.begin()) return at;
    const kx::Named& operation = *named(each.operation);
    const auto execute = [&](const uint8_t* lanes) {
      return operation.operation({machine, set, each, lanes, now, withheld, handing}, operation);
    };
    if (!has_guard) {
      if (!execute(every)) return at;
    } else {
      const bool whole = guarded.lanes == set.rows * kLanes;
      if (guarded.lanes && !execute(whole ? nullptr : on)) return at;
      int64_t* counts = machine.guarded + 3 * each.site;
      counts[0] += 1;
      counts[1] += counted.warps;
      counts[2] += counted.lanes;
    }
    if (marked) handing.end();
  }
  return at;
}

// Begins with a block.
void enter(const kx::Machine& machine, const kx::Set& set, const kx::Block* blocks,
           kx::Turn& turn) {
  const kx::Block& block = blocks[turn.block];
  turn.at = 0;
  turn.turn += block.weight;
  turn.polls += block.weight > 1;
  turn.steps += (block.last - turn.block) * set.rows;
  int64_t* entered = machine.entered + 3 * turn.block;
  entered[0] += set.rows;
  entered[1] += turn.lanes;
  entered[2] |= set.indices;
}

// Whether Python has to enter a block.
bool is_held(const kx::Machine& machine, const kx::Block& block, bool masked, bool meets) {
  if (!block.code || (block.joins && meets)) return true;
  if (block.held == kx::Held::kGate) return false;
  return (machine.marks->marks && !block.code->uses) || block.held == kx::Held::kAlways || (block.held == kx::Held::kInPart && masked);
}

// Whether warps need not wait at a block: if it is a gate, they have passed it.
bool may_enter(const kx::Machine& machine, const kx::Set& set, const kx::Block& block,
               const uint8_t* active, int64_t& now) {
  if (block.held != kx::Held::kGate) return true;
  const kx::Instruction& gate = block.code->instructions[0];
  kx::Handing handing(*machine.marks, nullptr, machine, set, {-1, active, active});
  const kx::Named& operation = *named(gate.operation);
  return operation.operation({machine, set, gate, active, now, 0, handing}, operation);
}

// Where all active lanes go after a block; negative if they part, or Python has to look.
int64_t next(const kx::Machine& machine, const kx::Set& set, const kx::Block& block,
             const uint8_t* active, int64_t lanes) {
  if (block.guard < 0 || block.target < 0) return block.target;
  if (machine.marks->total && machine.marks->is_marked(block.guard)) return -1;
  const int64_t taken = hold(machine, set, block.guard, block.negated, active, nullptr).lanes;
  return taken == lanes ? block.target : taken == 0 ? block.following : -1;
}

}  // namespace

// The index of an operation, -1 if there is none of that name.
extern "C" int kx_operation(const char* name) {
  for (int index = 0; const kx::Named* each = named(index); ++index) {
    if (!std::strcmp(each->name, name)) return index;
  }
  return -1;
}

// Copies the name of the operation of an index; 0 if there is none.
extern "C" int kx_operation_name(int index, char* name, int size) {
  const kx::Named* found = named(index);
  if (found) std::strncpy(name, found->name, size);
  return found != nullptr;
}

// Executes a block from turn->at on, if that is negative after it has entered it, and those that
// follow. Returns 1 where Python has to execute an instruction of turn->block, or, if turn->at is
// their number, to decide where lanes go; 0 where it has to enter turn->block.
extern "C" int kx_run(const kx::Machine* machine, const kx::Set* set, const kx::Block* blocks,
                      kx::Turn* turn, const kx::Array* mask, int masked, int withheld) {
  const uint8_t* active = masked ? reinterpret_cast<const uint8_t*>(mask->data) : nullptr;
  if (turn->at < 0) {
    if (!may_enter(*machine, *set, blocks[turn->block], active, turn->now)) return 0;
    enter(*machine, *set, blocks, *turn);
  }
  for (;;) {
    const kx::Block& block = blocks[turn->block];
    if (block.held != kx::Held::kGate) {
      turn->at = execute(*machine, *set, *block.code, turn->at, active, turn->now, withheld);
      if (turn->at < block.code->count) return 1;
    }
    const int64_t first = next(*machine, *set, block, active, turn->lanes);
    if (first < 0) return 1;
    const kx::Block& following = blocks[first];
    turn->block = first;
    if (turn->turn >= turn->quantum || is_held(*machine, following, masked, turn->meets)) return 0;
    if (!may_enter(*machine, *set, following, active, turn->now)) return 0;
    enter(*machine, *set, blocks, *turn);
  }
}
