"""The fifth-generation tensor core: mma and commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.arithmetic import tensor
from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.issue import At, each_lane
from kernelexp.emulator.isa.mbarrier import WINDOW
from kernelexp.emulator.isa.memory import nothing
from kernelexp.emulator.isa.predicate import _predicate as predicate
from kernelexp.emulator.isa.registry import Op, builder, modifiers, refuse
from kernelexp.emulator.machine import operands
from kernelexp.emulator.machine.asynchronous import Issuer, Pending
from kernelexp.emulator.ptx.faults import UnsupportedInstruction
from kernelexp.emulator.ptx.syntax import Address, Instruction, Vector
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine

_GROUP = "{g:cta_group::1|cta_group::2}"


@builder("tcgen05.fence::{w:before_thread_sync|after_thread_sync}")
def fence(ins: Instruction, d: Decoder) -> Op:
    """Tensor operations land between instructions here: leaving this fence out is not found."""
    return nothing


_TYPES = {
    "f8f6f4": {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"},
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
}
_ELEMENT = {"f8f6f4": 1, "f16": 2, "tf32": 4, "i8": 1}
K_BYTES = 32
"""Every dense instruction takes 32 bytes of K a row (PTX ISA, tcgen05 "Matrix shapes")."""


class Shape:
    """What an instruction descriptor says (PTX ISA, "Instruction descriptor")."""

    def __init__(self, value: int, kind: str, group: int) -> None:
        self.kind = kind
        self.group = group
        self.n = (value >> 17 & 0x3F) << 3
        self.m = (value >> 24 & 0x1F) << 4
        self.d_type = {0: "f16", 1: "f32", 2: "s32"}.get(value >> 4 & 3, "")
        self.transpose_a, self.transpose_b = bool(value >> 15 & 1), bool(value >> 16 & 1)
        self.negate_a, self.negate_b = bool(value >> 13 & 1), bool(value >> 14 & 1)
        self.a_signed, self.b_signed = bool(value >> 7 & 1), bool(value >> 10 & 1)
        self.saturate = bool(value >> 3 & 1)
        self.element = _ELEMENT[kind]
        types = _TYPES.get(kind, {})
        self.a_type, self.b_type = types.get(value >> 7 & 7, ""), types.get(value >> 10 & 7, "")
        self.sparse = bool(value >> 2 & 1)

    def faults(self) -> list[str]:
        found = []
        step = 8 if self.group == 1 else 16
        if self.m not in ((64, 128) if self.group == 1 else (128, 256)):
            found.append(f"M = {self.m} with cta_group::{self.group}")
        if self.n % step or not step <= self.n <= 256 or (self.m == 128 and self.n % 16):
            found.append(f"N = {self.n} with M = {self.m} and cta_group::{self.group}")
        if self.kind != "i8" and not (self.a_type and self.b_type):
            found.append(f"an operand type that kind::{self.kind} does not have")
        if self.d_type not in {"i8": ("s32",), "tf32": ("f32",)}.get(self.kind, ("f16", "f32")):
            found.append(f"D type {self.d_type or 'reserved'} with kind::{self.kind}")
        return found


@builder(
    f"tcgen05.mma.{_GROUP}.kind::{{k:f8f6f4|f16|tf32|i8}}{{c:|.collector::a::discard|.collector::a::fill|.collector::a::use|.collector::a::lastuse}}"
)
def mma(ins: Instruction, d: Decoder) -> Op:
    """Dense, one and two CTAs, A from shared or tensor memory, all swizzles, transposed operands;
    the tensor core's own precision. Sparse, block-scaled and .ws forms are refused."""
    parts = modifiers(ins)
    kind, group = parts[3].removeprefix("kind::"), int(parts[2][-1])
    to = At(ins.operands[0], d, ins)
    a_tmem = At(ins.operands[1], d, ins) if isinstance(ins.operands[1], Address) else None
    a = a_tmem.slot if a_tmem else d.source(ins.operands[1], "b64", ins)
    b, shape_slot = d.source(ins.operands[2], "b64", ins), d.source(ins.operands[3], "b32", ins)
    rest = list(ins.operands[4:])
    if rest and isinstance(rest[0], Vector):
        raise refuse(ins, "disables output lanes, which the emulator does not model")
    enable, flip = predicate(d, ins, rest[0])
    if len(rest) > 1:
        raise refuse(ins, "scales its input, which the emulator does not model")
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            shape = Shape(int(R[shape_slot][row, lane]), kind, group)
            _check(machine, shape, ins, place)
            issue_mma(
                machine,
                Issuer(machine, place, lane),
                ins,
                shape,
                to.value(R, row, lane),
                int(R[a][row, lane]),
                a_tmem is not None,
                int(R[b][row, lane]),
                bool(R[enable][row, lane]) != flip,
                number,
            )

    return op


def _check(machine: Machine, shape: Shape, ins: Instruction, place: int) -> None:
    for fault in shape.faults():
        machine.found("tensor-descriptor", f"{fault} is not possible.", ins, place)
    if shape.sparse or shape.negate_a or shape.negate_b or shape.d_type == "":
        raise UnsupportedInstruction(
            f"{ins.where()}: an instruction descriptor with sparsity, negation or a reserved type."
        )
    if shape.group == 2 and machine.cluster_size % 2:
        machine.found("tensor-descriptor", "cta_group::2 in a cluster of odd size.", ins, place)


def issue_mma(
    machine: Machine,
    issuer: Issuer,
    ins: Instruction,
    shape: Shape,
    d: int,
    a: int,
    a_in_tmem: bool,
    b: int,
    accumulate: bool,
    number: int,
) -> None:
    own = machine.cta_of(issuer.place)
    ctas = [own.place] if shape.group == 1 else [own.place & ~1, own.place | 1]
    rows = shape.m // len(ctas)
    tally = machine.tally(number)
    tally.operand_wavefronts += (shape.m + shape.n) * K_BYTES // 128

    def land() -> None:
        machine.clocks.tick()
        n = shape.n // len(ctas)
        k = K_BYTES // shape.element
        parts = [
            operands.fetch(
                machine, issuer, cta, b, n, k, shape.element, shape.transpose_b, True, ins
            )
            for cta in ctas
        ]
        whole = np.concatenate(parts) if len(parts) > 1 else parts[0]
        for cta in ctas:
            if a_in_tmem:
                left = _tmem_operand(machine, cta, a, rows, k, shape, ins, issuer)
            else:
                left = operands.fetch(
                    machine, issuer, cta, a, rows, k, shape.element, shape.transpose_a, True, ins
                )
            _multiply(machine, issuer, cta, shape, d, left, whole, accumulate, rows, ins)

    touches = []
    if machine.late:
        for cta in ctas:
            touches += [_span(machine, cta, b, shape.n // len(ctas), shape.transpose_b)]
            if not a_in_tmem:
                touches += [_span(machine, cta, a, rows, shape.transpose_a)]
    machine.engines.issue(
        Pending(
            f"an MMA ({ins.where()})",
            land,
            ins,
            order=("tensor", own.place, issuer.thread),
            touches=tuple(touches),
        )
    )


def _span(machine: Machine, cta: int, value: int, rows: int, transposed: bool) -> tuple[int, int]:
    """Arena range of an operand, for telling overlaps: its first row to its last."""
    d = operands.Descriptor(value, True)
    base = machine.arena_offset(cta, d.start)
    if transposed:
        return base, base + K_BYTES
    return base, base + (rows - 1) // 8 * d.stride + K_BYTES


def _tmem_operand(
    machine: Machine,
    cta: int,
    address: int,
    rows: int,
    k: int,
    shape: Shape,
    ins: Instruction,
    issuer: Issuer,
) -> Array:
    """A from tensor memory: row r in lane r, K packed along the columns."""
    column, columns = address & 0xFFFF, K_BYTES // 4
    machine.tmem.check(cta, column, columns, ins, issuer.place)
    words = machine.tmem.data[cta, :rows, column : column + columns]
    result: Array = np.ascontiguousarray(words).view(f"u{shape.element}")
    return result


def _multiply(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    shape: Shape,
    d: int,
    a: Array,
    b: Array,
    accumulate: bool,
    rows: int,
    ins: Instruction,
) -> None:
    column = d & 0xFFFF
    lanes, split = _lanes(shape)
    columns = shape.n // (2 if split else 1)
    machine.tmem.check(cta, column, columns, ins, issuer.place)
    data, written = machine.tmem.data[cta], machine.tmem.written[cta]
    window = slice(column, column + columns)
    c = None
    if accumulate:
        if not written[lanes, window].all():
            machine.found(
                "tmem-uninitialised",
                "an MMA adds to tensor memory that nothing wrote.",
                ins,
                issuer.place,
            )
        c = data[lanes, window]
        c = np.concatenate([c[:64], c[64:]], axis=1) if split else c
    result = product(a, b, c, shape)
    if split:
        half = result.shape[1] // 2
        result = np.concatenate([result[:, :half], result[:, half:]])
    data[lanes, window] = result
    written[lanes, window] = True


def _lanes(shape: Shape) -> tuple[Any, bool]:
    """(tensor-memory lanes of D's rows, whether N is split between lanes 0-63 and 64-127).

    PTX ISA, tcgen05 "Data path layout": row r in lane r for 128 rows a CTA (layouts A and D); 64
    rows of one CTA in the first 16 lanes of each quarter (F); 64 rows a CTA of a pair (B) split.
    """
    if shape.m == 128 and shape.group == 2:
        return slice(0, 128), True
    if shape.m == 64:
        return (np.arange(64) // 16 * 32 + np.arange(64) % 16), False
    return slice(0, 128), False


def product(a: Array, b: Array, c: Array | None, shape: Shape) -> Array:
    if shape.kind == "i8":
        return tensor.mma_int8(
            a, b, c, a_signed=shape.a_signed, b_signed=shape.b_signed, satfinite=shape.saturate
        )
    if shape.d_type == "f16":
        low = None if c is None else (c & 0xFFFF).astype(np.uint16)
        result = tensor.mma_f16(
            a, b, low, a_type=shape.a_type, b_type=shape.b_type, precision=tensor.TCGEN05
        )
        return result.astype(np.uint32)
    return tensor.mma(a, b, c, a_type=shape.a_type, b_type=shape.b_type, precision=tensor.TCGEN05)


@builder(
    f"tcgen05.commit.{_GROUP}.mbarrier::arrive::one{{s:|.shared::cluster}}{{m:|.multicast::cluster}}.b64"
)
def commit(ins: Instruction, d: Decoder) -> Op:
    """One arrival when the thread's MMAs so far have landed, in every CTA of the mask."""
    bar = At(ins.operands[0], d, ins)
    multicast = "multicast::cluster" in modifiers(ins)
    mask_slot = d.source(ins.operands[1], "u16", ins) if multicast else None

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            _, cta, low = machine.shared_offset(place, bar.value(R, row, lane) & WINDOW, ins)
            ctas, own = [cta], machine.cta_of(place)
            if mask_slot is not None:
                mask, first = int(R[mask_slot][row, lane]), own.place - own.rank
                ctas = [first + rank for rank in range(machine.cluster_size) if mask >> rank & 1]
            issuer = Issuer(machine, place, lane)

            def land(ctas: list[int] = ctas, low: int = low, issuer: Issuer = issuer) -> None:
                for target in ctas:
                    _arrive(machine, target, low, issuer, ins)

            machine.engines.issue(
                Pending(
                    f"a commit ({ins.where()})",
                    land,
                    ins,
                    order=("tensor", own.place, issuer.thread),
                )
            )

    return op


def _arrive(machine: Machine, cta: int, low: int, issuer: Issuer, ins: Instruction) -> None:
    if machine.ctas[cta].exited:
        machine.found(
            "remote-cta-exited",
            f"a commit arrives in CTA {machine.ctas[cta].number}, which has ended.",
            ins,
            issuer.place,
        )
    barrier = machine.mbarriers.find(
        machine.arena_offset(cta, low), machine.ctas[cta].number, low, ins
    )
    if barrier is not None:
        row = np.zeros_like(issuer.seen)
        row[machine.clocks.tensor] = machine.clocks.tick()
        machine.mbarriers.arrive(barrier, 1, row, ins)
