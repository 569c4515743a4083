"""Hopper's warpgroup matrix multiplication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.arithmetic import tensor
from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.gate import Gate
from kernelexp.emulator.isa.matrix import LANE, _operand
from kernelexp.emulator.isa.predicate import _predicate as predicate
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine import operands
from kernelexp.emulator.machine.asynchronous import Issuer, Pending
from kernelexp.emulator.ptx.syntax import Immediate, Instruction, Vector
from kernelexp.emulator.slots import POISON, Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import Fragment

_ELEMENT = {"e4m3": 1, "e5m2": 1, "f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1}
WARPS = 4


class Form:
    """What one wgmma.mma_async computes; its operands as slots."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        parts = modifiers(ins)
        self.ins, self.number = ins, d.number
        shape = parts[4]
        self.n, self.k = (int(x) for x in shape.split("n")[1].split("k"))
        self.d_type, self.a_type, self.b_type = parts[5:8]
        self.element = _ELEMENT[self.a_type]
        count = self.n // 2 if self.d_type in ("f32", "s32") else self.n // 4
        self.d = d.destinations(ins.operands[0], ins, count)
        self.from_registers = isinstance(ins.operands[1], Vector)
        self.a = (
            d.sources(ins.operands[1], "b32", ins, 4)
            if self.from_registers
            else [d.source(ins.operands[1], "b64", ins)]
        )
        self.b = d.source(ins.operands[2], "b64", ins)
        rest = list(ins.operands[3:])
        self.scale = predicate(d, ins, rest.pop(0)) if rest else None
        numbers = [operand.value for operand in rest if isinstance(operand, Immediate)]
        floating = self.d_type != "s32"
        self.negate = (
            tuple(n == -1 for n in numbers[:2])
            if floating and len(numbers) >= 2
            else (False, False)
        )
        majors = [bool(n) for n in numbers[2:]]
        self.transpose_b = majors[-1] if majors else False
        self.transpose_a = majors[0] if len(majors) == 2 else False
        self.saturate = "satfinite" in parts
        self.row, self.column = self._places()

    def _places(self) -> tuple[Array, Array]:
        """(row of the warp's 16, column) of each value of D: [registers, values, 32 lanes]."""
        per = 1 if len(self.d) == self.n // 2 else 2
        value = np.arange(len(self.d) * per).reshape(-1, per, 1)
        group, within = value // 4, value % 4
        row = LANE // 4 + 8 * (within // 2)
        column = 8 * group + 2 * (LANE % 4) + within % 2
        row, column = np.broadcast_arrays(row, column)
        return row, column


_N = "{n:" + "|".join(f"m64n{n}" for n in range(8, 257, 8)) + "}"
_HEAD = "wgmma.mma_async.sync.aligned." + _N


@builder(_HEAD + "k16.{d:f32|f16}.f16.f16", sync=True)
@builder(_HEAD + "k16.f32.bf16.bf16", sync=True)
@builder(_HEAD + "k8.f32.tf32.tf32", sync=True)
@builder(_HEAD + "k32.{d:f32|f16}.{a:e4m3|e5m2}.{b:e4m3|e5m2}", sync=True)
@builder(_HEAD + "k32.s32.{a:s8|u8}.{b:s8|u8}{x:|.satfinite}", sync=True)
def mma_async(ins: Instruction, d: Decoder) -> Op:
    """The four warps' parts land together; accumulators hold poison until the wait; FP8 keeps 13
    bits as Hopper does. Sparse forms are refused."""
    form = Form(ins, d)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place in enumerate(warps.warps.tolist()):
            _join(machine, form, R, row, place)

    return op


def _join(machine: Machine, form: Form, R: list[Array], row: int, place: int) -> None:
    """A warp comes to the instruction; the last of its warpgroup issues it."""
    cta, warp = machine.cta_of(place).place, machine.warp_of(place)
    turns = machine.groups.setdefault(("wgmma turn", place), {})
    turn = turns[form.number] = turns.get(form.number, 0) + 1
    key = ("wgmma join", cta, warp // WARPS, form.number, turn)
    present, operation = machine.groups.setdefault(key, ({}, _operation(form)))
    present[warp % WARPS] = place
    # Accumulators in flight: the engine's copy, by register, until a wait writes them back.
    held = machine.groups.setdefault(("wgmma held", place), {})
    for slot in form.d:
        if slot not in held:
            held[slot] = R[slot][row].copy()
        R[slot][row].fill(POISON[32])
    machine.groups.setdefault(("wgmma open", place), []).append(operation)
    if len(present) == WARPS:
        del machine.groups[key]
        _issue(machine, form, operation, [present[index] for index in range(WARPS)], cta)


def _operation(form: Form) -> Pending:
    """Not issued yet: warps that come first wait for the others at their wait_group."""

    def land() -> None:
        raise AssertionError("landed before all four warps came")

    return Pending(f"a wgmma ({form.ins.where()})", land, form.ins, registers=tuple(form.d))


def _issue(machine: Machine, form: Form, operation: Pending, places: list[int], cta: int) -> None:
    arrays = machine.registers.arrays
    first = places[0]
    issuer = Issuer(machine, first, 0)
    b = int(arrays[form.b][first, 0])
    a = None if form.from_registers else int(arrays[form.a[0]][first, 0])
    accumulate = True
    if form.scale is not None:
        slot, flip = form.scale
        accumulate = bool(arrays[slot][first, 0]) != flip
    early = None
    if form.from_registers and not machine.late:
        early = _registers(arrays, form, places)
    rows = form.n + (0 if form.from_registers else 64)
    machine.tally(form.number).operand_wavefronts += rows * 32 // 128

    def operand(value: int, height: int, transposed: bool) -> Array:
        return operands.fetch(
            machine, issuer, cta, value, height, form.k, form.element, transposed, False, form.ins
        )

    def land() -> None:
        machine.clocks.tick()
        right = operand(b, form.n, form.transpose_b)
        if a is not None:
            left = operand(a, 64, form.transpose_a)
        else:
            # Late, so that a register changed before the wait shows.
            left = _registers(arrays, form, places) if early is None else early
        _multiply(machine, form, places, left, right, accumulate)

    operation.land = land
    operation.order = ("wgmma", cta, first)
    if machine.late:
        operation.touches = (_span(machine, cta, b, form.n, form.transpose_b),)
        if a is not None:
            operation.touches += (_span(machine, cta, a, 64, form.transpose_a),)
    machine.engines.issue(operation)


def _span(machine: Machine, cta: int, value: int, rows: int, transposed: bool) -> tuple[int, int]:
    """Arena range of an operand, for telling overlaps."""
    d = operands.Descriptor(value, False)
    base = machine.arena_offset(cta, d.start)
    return base, base + (0 if transposed else (rows - 1) // 8 * d.stride) + 32


def _registers(arrays: list[Array], form: Form, places: list[int]) -> Array:
    """A from registers: [64, K] codes."""
    values = [np.stack([arrays[slot][place] for place in places]) for slot in form.a]
    return _operand(values, 16, 8 * form.element).reshape(64, -1)


def _multiply(
    machine: Machine, form: Form, places: list[int], a: Array, b: Array, accumulate: bool
) -> None:
    half = form.d_type == "f16"
    c = np.zeros((64, form.n), np.uint16 if half else np.uint32)
    shifts = (16 * np.arange(form.row.shape[1], dtype=np.uint32))[:, None]
    for index, place in enumerate(places):
        held = machine.groups["wgmma held", place]
        words = np.stack([held[slot] for slot in form.d])[:, None, :] >> shifts
        c[16 * index + form.row, form.column] = words & 0xFFFF if half else words
    result = _product(form, a, b, c if accumulate else None)
    for index, place in enumerate(places):
        held = machine.groups["wgmma held", place]
        values = result[16 * index + form.row, form.column].astype(np.uint32) << shifts
        words = np.bitwise_or.reduce(values, axis=1)
        for position, slot in enumerate(form.d):
            held[slot] = words[position]


def _product(form: Form, a: Array, b: Array, c: Array | None) -> Array:
    if form.d_type == "s32":
        return tensor.mma_int8(
            a,
            b,
            c,
            a_signed=form.a_type == "s8",
            b_signed=form.b_type == "s8",
            satfinite=form.saturate,
        )
    for flag, codes in zip(form.negate, (a, b), strict=True):
        if flag:
            codes ^= codes.dtype.type(1 << (8 * form.element - 1))
    precision = tensor.WGMMA_FP8 if form.element == 1 else tensor.WGMMA
    function = tensor.mma_f16 if form.d_type == "f16" else tensor.mma
    return function(a, b, c, a_type=form.a_type, b_type=form.b_type, precision=precision)


@builder("wgmma.fence.sync.aligned", sync=True)
def fence(ins: Instruction, d: Decoder) -> Op:
    """Registers are read when the operation lands: leaving this fence out is not found."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        return None

    return op


@builder("wgmma.commit_group.sync.aligned", sync=True)
def commit(ins: Instruction, d: Decoder) -> Op:
    """Closes the warp's group."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        groups = warps.machine.groups
        for place in warps.warps.tolist():
            groups.setdefault(("wgmma", place), []).append(groups.pop(("wgmma open", place), []))

    return op


class Wait(Gate):
    """wgmma.wait_group N: the accumulators of landed operations are in their registers."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        super().__init__(ins)
        self.allowed = d.constant(ins.operands[0], ins)

    def _waited(self, machine: Machine, fragment: Fragment) -> list[Pending]:
        groups = machine.groups.get(("wgmma", fragment.warp), [])
        chosen = groups[: max(0, len(groups) - self.allowed)]
        return [operation for group in chosen for operation in group]

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return all(operation.done for operation in self._waited(machine, fragment))

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        place = fragment.warp
        groups = machine.groups.get(("wgmma", place), [])
        kept = groups[max(0, len(groups) - self.allowed) :]
        machine.groups["wgmma", place] = kept
        opened = machine.groups.get(("wgmma open", place), [])
        busy = {slot for p in [*opened, *(p for g in kept for p in g)] for slot in p.registers}
        held = machine.groups.get(("wgmma held", place), {})
        for slot in [slot for slot in held if slot not in busy]:
            machine.registers.arrays[slot][place] = held.pop(slot)
        # What the MMAs have read may be overwritten by whoever hears of this.
        row = np.zeros_like(machine.clocks.seen[place])
        row[machine.clocks.tensor] = machine.clocks.now
        machine.clocks.acquire(place, row)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        pending = sum(not operation.done for operation in self._waited(machine, fragment))
        return f"{pending} wgmma operations"


@builder("wgmma.wait_group.sync.aligned", gate=True)
def wait(ins: Instruction, d: Decoder) -> Wait:
    """At most N groups pending; the registers of the others hold their results."""
    return Wait(ins, d)
