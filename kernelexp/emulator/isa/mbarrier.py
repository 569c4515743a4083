"""mbarrier: init, arrivals, transactions, waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.gate import Gate, bits_of, lanes_of
from kernelexp.emulator.isa.memory import address
from kernelexp.emulator.isa.registry import Op, alu, builder, modifiers
from kernelexp.emulator.machine.arena import WRITTEN
from kernelexp.emulator.machine.mbarrier import STATE_SHIFT
from kernelexp.emulator.machine.warps import ALL
from kernelexp.emulator.ptx.syntax import Address, Immediate, Instruction, Register
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.mbarrier import Mbarrier
    from kernelexp.emulator.machine.warps import Fragment

_OWN = "{s:|.shared|.shared::cta}.b64"
_ANY = "{s:|.shared|.shared::cta|.shared::cluster}.b64"
_SEM = "{m:|.release|.relaxed}{c:|.cta|.cluster}"
WINDOW = (1 << 40) - 1
MBARRIER_BYTES = 8


def per_lane(
    warps: Any, m: Any, addresses: Array, ins: Instruction
) -> list[tuple[int, int, list[int]]]:
    """(place, address, lanes) for each mbarrier that lanes of each warp name."""
    found = []
    for row, place in enumerate(warps.warps.tolist()):
        lanes = range(32) if m is True else np.flatnonzero(m[row]).tolist()
        groups: dict[int, list[int]] = {}
        for lane in lanes:
            groups.setdefault(int(addresses[row, lane]) & WINDOW, []).append(lane)
        found += [(place, at, group) for at, group in groups.items()]
    for place, at, _ in found:
        if at % MBARRIER_BYTES:
            warps.machine.found("misaligned", f"mbarrier at shared {at:#x}.", ins, place)
    return found


@builder("mbarrier.init" + _OWN)
def init(ins: Instruction, d: Decoder) -> Op:
    """Phase 0, `count` arrivals pending."""
    where = address(ins, ins.operands[0], d)
    count = d.source(ins.operands[1], "u32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for place, at, lanes in per_lane(warps, m, where(R), ins):
            offset, cta, low = machine.shared_offset(place, at, ins)
            row = place - int(warps.warps[0])
            number = machine.ctas[cta].number
            machine.mbarriers.init(offset, number, low, int(R[count][row, lanes[0]]), ins)
            machine.shared.state[offset : offset + MBARRIER_BYTES] = WRITTEN

    return op


@builder("mbarrier.inval" + _OWN)
def inval(ins: Instruction, d: Decoder) -> Op:
    """The storage may be used for something else."""
    where = address(ins, ins.operands[0], d)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        for place, at, _ in per_lane(warps, m, where(R), ins):
            offset, _cta, _low = warps.machine.shared_offset(place, at, ins)
            warps.machine.mbarriers.at.pop(offset, None)

    return op


@builder("mbarrier.{o:arrive|arrive_drop}{n:|.noComplete}" + _SEM + _ANY)
@builder("mbarrier.{o:arrive|arrive_drop}.expect_tx" + _SEM + _ANY)
def arrive(ins: Instruction, d: Decoder) -> Op:
    """Each lane arrives, with its transaction bytes first; the state is the phase's number."""
    parts = modifiers(ins)
    # `mbarrier.arrive.b64 state, [bar]`; remote and in inline asm `_, [bar]` or just `[bar]`.
    operands = list(ins.operands)
    state = None if isinstance(operands[0], Address) else operands.pop(0)
    state_slot = d.destination(state, ins) if state is not None else None
    where = address(ins, operands[0], d)
    number = operands[1] if len(operands) > 1 else Immediate(0 if "expect_tx" in parts else 1)
    amount = d.source(number, "u32", ins)
    expects, drops = "expect_tx" in parts, "arrive_drop" in parts
    releases = "relaxed" not in parts

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        first = int(warps.warps[0])
        for place, at, lanes in per_lane(warps, m, where(R), ins):
            barrier = machine.mbarrier(place, at, ins)
            if barrier is None:
                continue
            if state_slot is not None:
                R[state_slot][place - first, lanes] = barrier.state()
            values = R[amount][place - first, lanes]
            seen = machine.clocks.release(place)
            if not releases:
                seen = machine.clocks.engines_only(seen)
            count = len(lanes) if expects else int(values.sum())
            if expects:
                machine.mbarriers.expect(barrier, int(values.sum()), ins)
            machine.mbarriers.arrive(barrier, count, seen, ins, drop=count if drops else 0)

    return op


@builder("mbarrier.{o:expect_tx|complete_tx}{m:|.relaxed}{c:|.cta|.cluster}" + _ANY)
def transactions(ins: Instruction, d: Decoder) -> Op:
    """Moves the transaction count without an arrival."""
    expects = modifiers(ins)[1] == "expect_tx"
    where = address(ins, ins.operands[0], d)
    amount = d.source(ins.operands[1], "u32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for place, at, lanes in per_lane(warps, m, where(R), ins):
            barrier = machine.mbarrier(place, at, ins)
            if barrier is not None:
                size = int(R[amount][place - int(warps.warps[0]), lanes].sum())
                if expects:
                    machine.mbarriers.expect(barrier, size, ins)
                else:
                    machine.mbarriers.complete(barrier, size, None, ins)

    return op


class Wait(Gate):
    """test_wait and try_wait, by parity or by state."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        super().__init__(ins)
        parts = modifiers(ins)
        self.suspends = parts[1] == "try_wait"
        self.parity = "parity" in parts
        self.acquires = "relaxed" not in parts
        self.target = d.destination(ins.operands[0], ins)
        operand = ins.operands[1]
        assert isinstance(operand, Address)
        self.offset = operand.offset
        base = operand.base
        bits = d.slots.width(base) if isinstance(base, Register) else 64
        self.base = d.source(operand.base, f"u{bits}", ins)
        self.wanted = d.source(ins.operands[2], "u32" if self.parity else "u64", ins)
        self.number = d.number

    def _waits(
        self, machine: Machine, fragment: Fragment
    ) -> list[tuple[Mbarrier | None, int, int]]:
        """(barrier, wanted phase or parity, lanes) of each group of lanes that ask the same."""
        bases = machine.value(self.base, fragment.warp).tolist()
        wanted = machine.value(self.wanted, fragment.warp).tolist()
        groups: dict[tuple[int, int], int] = {}
        for lane in lanes_of(fragment):
            key = bases[lane], wanted[lane]
            groups[key] = groups.get(key, 0) | 1 << lane
        return [
            (
                machine.mbarrier(fragment.warp, base + self.offset & WINDOW, self.instruction),
                want,
                lanes,
            )
            for (base, want), lanes in groups.items()
        ]

    def _passed(self, barrier: Mbarrier | None, wanted: int) -> bool:
        if barrier is None:
            return True
        return barrier.passed(wanted) if self.parity else barrier.phase != wanted >> STATE_SHIFT

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        # Registers don't change while a warp sleeps: what it waits for is looked up once.
        waits = fragment.waiting = self._waits(machine, fragment)
        if self.ready(machine, fragment):
            self.leave(machine, fragment)
            return True
        # The instruction may give up at any time and say false. It does so once, so that a program
        # without a loop around it is found out; the next time round the warp sleeps.
        phases = sum(barrier.phase for barrier, _, _ in waits if barrier is not None)
        if not self.suspends or fragment.polls.get(self.number) != phases:
            fragment.polls[self.number] = phases
            self.leave(machine, fragment)
            return True
        return False

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return all(self._passed(barrier, wanted) for barrier, wanted, _ in fragment.waiting)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        result = machine.value(self.target, fragment.warp)
        for barrier, wanted, lanes in fragment.waiting:
            passed = self._passed(barrier, wanted)
            result[slice(None) if lanes == ALL else bits_of(lanes)] = passed
            if passed and barrier is not None and barrier.released is not None:
                row = barrier.released
                if not self.acquires:
                    row = machine.clocks.engines_only(row)
                machine.clocks.acquire(fragment.warp, row)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        waits = [
            (barrier.describe() if barrier else "no mbarrier", wanted)
            for barrier, wanted, _ in fragment.waiting
            if not self._passed(barrier, wanted)
        ]
        word = "parity" if self.parity else "state"
        return "; ".join(f"{word} {wanted} of {text}" for text, wanted in waits) or "nothing more"


_WAIT_SEM = "{m:|.acquire|.relaxed}{c:|.cta|.cluster}"


@builder("mbarrier.{o:test_wait|try_wait}{p:|.parity}" + _WAIT_SEM + _OWN, gate=True)
def wait(ins: Instruction, d: Decoder) -> Wait:
    """try_wait gives up once with false before it sleeps until the phase completes."""
    return Wait(ins, d)


@alu("mbarrier.pending_count.b64", "u32 b64")
def pending_count(state: Array) -> Array:
    """The count that the state's arrival found; the state's other bits are the emulator's own."""
    return (state & np.uint64((1 << STATE_SHIFT) - 1)).astype(np.uint32)
