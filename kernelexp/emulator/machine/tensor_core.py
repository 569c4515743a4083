"""The fifth-generation tensor core: matrix multiplications into tensor memory, and their commit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelexp.emulator.arithmetic import tensor
from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.asynchronous import Issuer, Pending
from kernelexp.emulator.machine.clocks import SLOTS
from kernelexp.emulator.machine.layout import WINDOW
from kernelexp.emulator.machine.machine import Machine
from kernelexp.emulator.machine.matrix_operands import K_BYTES, Matrix, fetch, span
from kernelexp.emulator.machine.site import UnsupportedInstruction
from kernelexp.emulator.machine.tmem import COLUMNS, LANES
from kernelexp.emulator.machine.tmem_races import GRANULE, Area
from kernelexp.emulator.machine.warps import expand

_TYPES = {
    "f8f6f4": {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"},
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
}
_ELEMENT = {"f8f6f4": 1, "f16": 2, "tf32": 4, "i8": 1}

RESERVED = 1 << 6 | 1 << 23 | 1 << 29 | 3 << 30
"""Bits of an instruction descriptor; the last two are the shift of forms that are not modelled."""


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
        self.reserved = value & RESERVED
        self.sparse = bool(value >> 2 & 1)

    def faults(self) -> list[str]:
        faults = []
        if self.reserved:
            faults.append(f"{self.reserved:#x} in the reserved bits of an instruction descriptor")
        if self.saturate and self.kind != "i8":
            faults.append(f"saturation with kind::{self.kind}")
        step = 8 if self.group == 1 else 16
        if self.m not in ((64, 128) if self.group == 1 else (128, 256)):
            faults.append(f"M = {self.m} with cta_group::{self.group}")
        if self.n % step or not step <= self.n <= 256 or (self.m == 128 and self.n % 16):
            faults.append(f"N = {self.n} with M = {self.m} and cta_group::{self.group}")
        if self.kind != "i8" and not (self.a_type and self.b_type):
            faults.append(f"an operand type that kind::{self.kind} does not have")
        if self.d_type not in {"i8": ("s32",), "tf32": ("f32",)}.get(self.kind, ("f16", "f32")):
            faults.append(f"D type {self.d_type or 'reserved'} with kind::{self.kind}")
        return faults


class Mma(NamedTuple):
    """D = A * B, or D + A * B, as one thread issues it."""

    shape: Shape
    d: int
    """Tensor-memory address."""
    a: int
    """Matrix descriptor, or tensor-memory address."""
    a_in_tmem: bool
    b: int
    """Matrix descriptor."""
    accumulate: bool
    disabled: tuple[int, ...] = ()
    """Masks of the lanes that it does not write, 32 lanes a word; none: it writes all."""

    def kept(self, cta: int) -> Array | None:
        """Which of the 128 lanes of a resident CTA it writes; None: all."""
        words = self.disabled[4 * (cta & 1 if self.shape.group == 2 else 0) :][:4]
        if not any(words):
            return None
        return ~expand(list(words)).reshape(-1)

    def rows(self) -> int:
        """Rows of A in each CTA."""
        return self.shape.m // self.shape.group

    def matrix_a(self) -> Matrix:
        shape = self.shape
        return Matrix(self.a, self.rows(), shape.element, shape.transpose_a, True)

    def matrix_b(self) -> Matrix:
        """Each CTA's part of B."""
        shape = self.shape
        return Matrix(self.b, shape.n // shape.group, shape.element, shape.transpose_b, True)


def _possible(machine: Machine, issuer: Issuer, shape: Shape) -> bool:
    """Whether there is such an instruction; a finding if there is not."""
    faults = [f"{fault} is not possible" for fault in shape.faults()]
    if shape.sparse or shape.negate_a or shape.negate_b or shape.d_type == "":
        raise UnsupportedInstruction(
            f"{issuer.site.where()}: an instruction descriptor with sparsity, negation or a "
            "reserved type."
        )
    if shape.group == 2 and machine.cluster_size % 2:
        faults.append("cta_group::2 in a cluster of odd size")
    for fault in faults:
        machine.report("tensor-descriptor", fault + ".", issuer.site, issuer.place)
    return not faults


def issue(machine: Machine, issuer: Issuer, mma: Mma) -> None:
    shape = mma.shape
    machine.tmem.grouped(shape.group, issuer.site, issuer.place)
    if not _possible(machine, issuer, shape):
        return
    own = machine.cta_of(issuer.place).place
    ctas = [own] if shape.group == 1 else [own & ~1, own | 1]
    tally = machine.execution.tally(issuer.site.number)
    tally.operand_wavefronts += (shape.m + shape.n) * K_BYTES // 128

    areas = [_areas(mma, cta) for cta in ctas]
    for written, read in areas:
        for area in (written, read):
            if area is not None and area.end > COLUMNS:
                columns = area.end - area.first
                machine.tmem.check(area.cta, area.first, columns, issuer.site, issuer.place)
        machine.tmem.races.multiply(written, issuer, read)

    def land() -> None:
        machine.clocks.tick()
        for written, read in areas:
            machine.tmem.races.multiplied(written, issuer, read)
        parts = [fetch(machine, issuer, cta, mma.matrix_b()) for cta in ctas]
        b = np.concatenate(parts) if len(parts) > 1 else parts[0]
        for cta in ctas:
            if mma.a_in_tmem:
                a = _from_tmem(machine, issuer, cta, mma)
            else:
                a = fetch(machine, issuer, cta, mma.matrix_a())
            _multiply(machine, issuer, cta, mma, a, b)

    touches = []
    if machine.late:
        for cta in ctas:
            touches.append(span(machine, cta, mma.matrix_b()))
            if not mma.a_in_tmem:
                touches.append(span(machine, cta, mma.matrix_a()))
    what, order = f"an MMA ({issuer.site.where()})", ("tensor", own)
    machine.engines.issue(Pending(what, land, issuer.site, order, tuple(touches)))


def _areas(mma: Mma, cta: int) -> tuple[Area, Area | None]:
    """The tensor memory of a CTA that an MMA writes, and that it reads A from."""
    shape = mma.shape
    _, split = _lanes(shape, mma.d)
    first = mma.d & 0xFFFF
    every = _granules(mma.d) if shape.m == 64 else (0, LANES // GRANULE, 1)
    d = Area(cta, every, first, first + shape.n // (2 if split else 1))
    if not mma.a_in_tmem:
        return d, None
    column = mma.a & 0xFFFF
    rows = _granules(mma.a) if shape.m == 64 else (0, mma.rows() // GRANULE, 1)
    return d, Area(cta, rows, column, column + K_BYTES // 4)


def _granules(address: int) -> tuple[int, int, int]:
    """The lanes of 64 rows, as an Area has them: one half of each quarter."""
    return address >> 20 & 1, LANES // GRANULE, 2


def _from_tmem(machine: Machine, issuer: Issuer, cta: int, mma: Mma) -> Array:
    """A from tensor memory: rows in the lanes that D's would have, K packed along the columns."""
    column, columns = mma.a & 0xFFFF, K_BYTES // 4
    machine.tmem.check(cta, column, columns, issuer.site, issuer.place)
    lanes = _lanes(mma.shape, mma.a)[0] if mma.shape.m == 64 else slice(mma.rows())
    words = machine.tmem.data[cta, lanes, column : column + columns]
    return np.ascontiguousarray(words).view(f"u{mma.shape.element}")


def _multiply(machine: Machine, issuer: Issuer, cta: int, mma: Mma, a: Array, b: Array) -> None:
    shape, column = mma.shape, mma.d & 0xFFFF
    lanes, split = _lanes(shape, mma.d)
    columns = shape.n // (2 if split else 1)
    machine.tmem.check(cta, column, columns, issuer.site, issuer.place)
    data, written = machine.tmem.data[cta], machine.tmem.written[cta]
    window = slice(column, column + columns)
    c = None
    if mma.accumulate:
        if not written[lanes, window].all():
            sentence = "an MMA adds to tensor memory that nothing wrote."
            machine.report("tmem-uninitialised", sentence, issuer.site, issuer.place)
        c = data[lanes, window]
        c = np.concatenate([c[:64], c[64:]], axis=1) if split else c
    result = _product(a, b, c, shape)
    if split:
        half = result.shape[1] // 2
        result = np.concatenate([result[:, :half], result[:, half:]])
    kept = mma.kept(cta)
    if kept is not None:
        chosen = np.arange(LANES)[lanes]
        result, lanes = result[kept[chosen]], chosen[kept[chosen]]
    data[lanes, window] = result
    written[lanes, window] = True


def _lanes(shape: Shape, address: int) -> tuple[Array | slice, bool]:
    """(tensor-memory lanes of D's rows, whether N is split between lanes 0-63 and 64-127).

    PTX ISA, tcgen05 "Data path layout": row r in lane r for 128 rows per CTA (layouts A and D); 64
    rows of one CTA in 16 lanes of each quarter (F), the first ones or, if the address has lane 16,
    the others; 64 rows per CTA of a pair (B) split.
    """
    if shape.m == 128 and shape.group == 2:
        return slice(0, 128), True
    if shape.m == 64:
        return (np.arange(64) // 16 * 32 + np.arange(64) % 16 + (address >> 16 & 16)), False
    return slice(0, 128), False


def _product(a: Array, b: Array, c: Array | None, shape: Shape) -> Array:
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


def commit(machine: Machine, issuer: Issuer, barrier: int, ranks: int | None) -> None:
    """One arrival when the thread's MMAs so far have landed, in every CTA of the mask of ranks."""
    _, cta, low = machine.shared_offset(issuer.place, barrier & WINDOW, issuer.site)
    ctas = [cta] if ranks is None else machine.multicast(issuer.place, ranks, issuer.site)

    def land() -> None:
        for target in ctas:
            _arrive(machine, issuer, target, low)

    own = machine.cta_of(issuer.place).place
    what, order = f"a commit ({issuer.site.where()})", ("tensor", own)
    signals = tuple(machine.arena_offset(target, low) for target in ctas)
    machine.engines.issue(Pending(what, land, issuer.site, order, signals=signals))


def _arrive(machine: Machine, issuer: Issuer, cta: int, low: int) -> None:
    if machine.ctas[cta].exited:
        sentence = f"a commit arrives in CTA {machine.ctas[cta].number}, which has ended."
        machine.report("remote-cta-exited", sentence, issuer.site, issuer.place)
    barrier = machine.mbarriers.find_in(cta, low, issuer.site)
    if barrier is not None:
        machine.mbarriers.signalled(barrier, issuer.site)
        clocks = machine.clocks
        clocks.tick()
        row = clocks.landed(clocks.tensor + issuer.place % SLOTS, issuer.seen)
        machine.mbarriers.arrive(barrier, 1, row, issuer.site)
