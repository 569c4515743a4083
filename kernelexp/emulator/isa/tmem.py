"""Tensor memory: allocation, loads and stores by warps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.gate import Gate, scalar
from kernelexp.emulator.isa.issue import At
from kernelexp.emulator.isa.mbarrier import WINDOW
from kernelexp.emulator.isa.registry import Op, builder, modifiers, refuse
from kernelexp.emulator.machine.arena import WRITTEN
from kernelexp.emulator.machine.tmem import COLUMNS
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import POISON, Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import Fragment

_GROUP = "{g:cta_group::1|cta_group::2}"


class Alloc(Gate):
    """tcgen05.alloc: one warp of each CTA; waits until the columns are free."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        super().__init__(ins)
        self.to = At(ins.operands[0], d, ins)
        self.count = d.source(ins.operands[1], "u32", ins)

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        columns = scalar(machine, self.count, fragment)
        cta = machine.cta_of(fragment.warp)
        last = machine.groups.get(("tmem last", cta.place), COLUMNS)
        faults = []
        if columns & (columns - 1) or not 32 <= columns <= COLUMNS:
            faults.append(f"{columns} columns: powers of two from 32 to {COLUMNS} are allowed")
        if cta.place in machine.tmem.relinquished:
            faults.append("an allocation after relinquish_alloc_permit")
        if columns > last:
            faults.append(f"{columns} columns after {last}: allocations must not grow")
        for fault in faults:
            machine.found("tmem-allocation", fault + ".", self.instruction, fragment.warp)
        machine.groups["tmem last", cta.place] = columns
        return super().enter(machine, fragment)

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        columns = scalar(machine, self.count, fragment)
        return machine.tmem.free_at(machine.cta_of(fragment.warp).place, columns) is not None

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        place = fragment.warp
        cta = machine.cta_of(place)
        first = machine.tmem.allocate(cta.place, scalar(machine, self.count, fragment))
        row = scalar(machine, self.to.slot, fragment) + self.to.offset
        offset, _, _ = machine.shared_offset(place, row & WINDOW, self.instruction)
        assert first is not None
        machine.shared.data[offset : offset + 4].view(np.uint32)[0] = first
        machine.shared.state[offset : offset + 4] = WRITTEN
        unit = offset // machine.clocks.unit
        machine.clocks.write_time[unit] = machine.clocks.now
        machine.clocks.write_thread[unit] = place * 32

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        columns = scalar(machine, self.count, fragment)
        held = machine.tmem.allocated.get(machine.cta_of(fragment.warp).place, {})
        return f"{columns} columns of tensor memory; allocated are {sum(held.values())}"


@builder(f"tcgen05.alloc.{_GROUP}.sync.aligned{{s:|.shared::cta}}.b32", gate=True)
def alloc(ins: Instruction, d: Decoder) -> Alloc:
    """Waits for free columns; sizes, order of sizes and relinquished permits are checked."""
    return Alloc(ins, d)


@builder(f"tcgen05.dealloc.{_GROUP}.sync.aligned.b32", sync=True)
def dealloc(ins: Instruction, d: Decoder) -> Op:
    """What is freed must be what was allocated."""
    address, count = (d.source(operand, "b32", ins) for operand in ins.operands)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        for row, place in enumerate(warps.warps.tolist()):
            machine = warps.machine
            cta = machine.cta_of(place)
            columns = int(R[count][row, 0])
            machine.tmem.free(cta.place, int(R[address][row, 0]) & 0xFFFF, columns, ins, place)

    return op


@builder(f"tcgen05.relinquish_alloc_permit.{_GROUP}.sync.aligned", sync=True)
def relinquish(ins: Instruction, d: Decoder) -> Op:
    """Allocations after it are a finding."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        for place in warps.warps.tolist():
            warps.machine.tmem.relinquished.add(warps.machine.cta_of(place).place)

    return op


# Loads and stores


class Access:
    """A tcgen05.ld or .st: which registers hold which lanes and columns."""

    def __init__(self, ins: Instruction, d: Decoder, address: Any, registers: Any) -> None:
        parts = modifiers(ins)
        self.shape, count = parts[4], int(parts[5][1:])
        if "pack::16b" in parts or "unpack::16b" in parts:
            raise refuse(ins, "packs 16-bit columns, which the emulator does not model")
        self.per_repeat = {"32x32b": 1, "16x256b": 4, "16x128b": 2}[self.shape]
        self.registers = count * self.per_repeat
        self.columns = count * {"32x32b": 1, "16x256b": 8, "16x128b": 4}[self.shape]
        self.at = At(address, d, ins)
        self.ins = ins
        lane = np.arange(32)[:, None]
        register = np.arange(self.registers)[None, :]
        if self.shape == "32x32b":
            self.lane, self.column = np.broadcast_arrays(lane, register)
        elif self.shape == "16x256b":
            self.lane, self.column = np.broadcast_arrays(
                lane // 4 + 8 * (register // 2 % 2),
                8 * (register // 4) + 2 * (lane % 4) + register % 2,
            )
        else:
            self.lane, self.column = np.broadcast_arrays(
                lane // 4 + 8 * (register % 2), 4 * (register // 2) + lane % 4
            )

    def place(self, machine: Machine, R: list[Array], row: int, place: int) -> tuple[int, int, int]:
        """(resident CTA, first lane, first column) of a warp's access, checked."""
        address = self.at.value(R, row, 0)
        cta, quarter = machine.cta_of(place).place, machine.warp_of(place) % 4
        lane, column = address >> 16, address & 0xFFFF
        if lane >> 5 != quarter:
            machine.found(
                "tmem-lanes",
                f"warp {machine.warp_of(place)} addresses lane {lane}: a warp reaches lanes "
                f"{32 * quarter} to {32 * quarter + 31} only (its rank modulo 4).",
                self.ins,
                place,
            )
        machine.tmem.check(cta, column, self.columns, self.ins, place)
        # Hardware is seen to take the low bits only (DeepGEMM passes lane 0 from every warp).
        return cta, 32 * quarter + (lane & 31 & ~15 if self.shape != "32x32b" else 0), column


_SHAPES = "{s:32x32b|16x256b|16x128b}.{x:x1|x2|x4|x8|x16|x32|x64|x128}"


@builder(f"tcgen05.ld.sync.aligned.{_SHAPES}{{p:|.pack::16b}}.b32", sync=True)
def ld(ins: Instruction, d: Decoder) -> Op:
    """The registers hold poison until wait::ld. 16x64b, 16x32bx2 and pack::16b are refused."""
    access = Access(ins, d, ins.operands[1], None)
    targets = d.destinations(ins.operands[0], ins, access.registers)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for slot in targets:
            R[slot].fill(POISON[32])
        for row, place in enumerate(warps.warps.tolist()):
            where = access.place(machine, R, row, place)
            early = None if machine.late else _read(machine, access, where, place)
            waiting = machine.groups.setdefault(("tmem ld", place), [])
            waiting.append((access, targets, where, early))

    return op


def _read(machine: Machine, access: Access, where: tuple[int, int, int], place: int) -> Array:
    """[32, registers] of a warp's load."""
    cta, lane, column = where
    lanes, columns = lane + access.lane, column + access.column
    if not machine.tmem.written[cta, lanes, columns].all():
        machine.found(
            "tmem-uninitialised",
            f"columns {column} to {column + access.columns - 1} of tensor "
            "memory are read before anything wrote them.",
            access.ins,
            place,
        )
    result: Array = machine.tmem.data[cta, lanes, columns]
    return result


@builder("tcgen05.wait::ld.sync.aligned", sync=True)
def wait_ld(ins: Instruction, d: Decoder) -> Op:
    """All loads of the warp so far are in their registers."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place in enumerate(warps.warps.tolist()):
            for access, targets, where, early in machine.groups.pop(("tmem ld", place), ()):
                values = _read(machine, access, where, place) if early is None else early
                for index, slot in enumerate(targets):
                    R[slot][row] = values[:, index]

    return op


@builder(f"tcgen05.st.sync.aligned.{_SHAPES}{{p:|.unpack::16b}}.b32", sync=True)
def st(ins: Instruction, d: Decoder) -> Op:
    """Lands at wait::st."""
    access = Access(ins, d, ins.operands[0], None)
    sources = d.sources(ins.operands[1], "b32", ins, access.registers)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place in enumerate(warps.warps.tolist()):
            where = access.place(machine, R, row, place)
            values = np.stack([R[slot][row] for slot in sources], axis=-1)
            if machine.late:
                waiting = machine.groups.setdefault(("tmem st", place), [])
                waiting.append((access, where, values))
            else:
                _write(machine, access, where, values)

    return op


def _write(machine: Machine, access: Access, where: tuple[int, int, int], values: Array) -> None:
    cta, lane, column = where
    machine.tmem.data[cta, lane + access.lane, column + access.column] = values
    machine.tmem.written[cta, lane + access.lane, column + access.column] = True


@builder("tcgen05.wait::st.sync.aligned", sync=True)
def wait_st(ins: Instruction, d: Decoder) -> Op:
    """All stores of the warp so far are in tensor memory."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        for place in warps.warps.tolist():
            for access, where, values in warps.machine.groups.pop(("tmem st", place), ()):
                _write(warps.machine, access, where, values)

    return op
