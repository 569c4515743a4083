// Executes the instructions of a block that have a compiled form, one after the other, each for all
// warps of a set.
#include "interpreter.hpp"

#include <cstring>
#include <initializer_list>

#include "marks.hpp"

namespace {

using kx::kLanes;

const kx::Named* named(int index) {
  for (const kx::Table* table : {&kx::kArithmetic, &kx::kAccesses}) {
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

// Writes for which of the active lanes a guard holds.
Guarded hold(const kx::Machine& machine, const kx::Set& set, const kx::Instruction& instruction,
             const uint8_t* mask) {
  const kx::Slot& guard = machine.slots[instruction.guard];
  Guarded found;
  for (int64_t row = 0; row < set.rows; ++row) {
    const char* holds = guard.data + (set.first + row * set.step) * guard.row;
    uint8_t* on = machine.lanes + row * kLanes;
    int lanes = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      on[lane] = (holds[lane] != instruction.negated) & (mask ? mask[row * kLanes + lane] : 1);
      lanes += on[lane];
    }
    found.lanes += lanes;
    found.warps += lanes != 0;
  }
  return found;
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

// Executes the instructions of a block from `at` on; returns the index of the first one that Python
// has to execute, or their number.
extern "C" int kx_execute(const kx::Machine* machine, const kx::Set* set, const kx::Code* code,
                          int at, const kx::Array* mask, int masked, int64_t now, int withheld) {
  const uint8_t* active = nullptr;
  if (masked) {
    if (mask->strides[0] != kLanes || mask->strides[1] != 1) return at;
    active = reinterpret_cast<const uint8_t*>(mask->data);
  }
  kx::Marks& marks = *machine->marks;
  for (; at < code->count; ++at) {
    const kx::Instruction& each = code->instructions[at];
    if (each.operation < 0 || (marks.expecting && uses_any(each, marks.expected))) return at;
    const kx::Uses* uses = code->uses ? code->uses + at : nullptr;
    const bool has_guard = each.guard >= 0;
    const Guarded guarded = has_guard ? hold(*machine, *set, each, active) : Guarded();
    const uint8_t* on = has_guard ? machine->lanes : active;
    kx::Handing handing(marks, uses, *machine, *set, {each.guard, active, on});
    const bool marked = marks.total && handing.is_needed();
    if (marked && !handing.begin()) return at;
    const kx::Named& operation = *named(each.operation);
    const auto execute = [&](const uint8_t* lanes) {
      return operation.operation({*machine, *set, each, lanes, now, withheld, handing}, operation);
    };
    if (!has_guard) {
      if (!execute(active)) return at;
    } else {
      const bool whole = guarded.lanes == set->rows * kLanes;
      if (guarded.lanes && !execute(whole ? nullptr : on)) return at;
      int64_t* counts = machine->guarded + 3 * each.site;
      counts[0] += 1;
      counts[1] += guarded.warps;
      counts[2] += guarded.lanes;
    }
    if (marked) handing.end();
  }
  return at;
}
