"""The fifth-generation tensor core: matrix multiplications into tensor memory, and their commit."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from warpsim.arithmetic import narrow, tensor
from warpsim.arithmetic.matrices import scaled
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer, Pending
from warpsim.machine.core.clocks import SLOTS
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.instruction_descriptor import CODE_BITS, DescriptorFields
from warpsim.machine.core.site import UnsupportedInstruction
from warpsim.machine.core.tmem_areas import COLUMNS, GRANULE, LANES, Area
from warpsim.machine.core.warps import expand
from warpsim.machine.memory.layout import WINDOW
from warpsim.machine.tensor.matrix_operands import K_BYTES, Matrix, fetch, span
from warpsim.machine.tensor.scale_factors import Factors
from warpsim.machine.wave.machine import Machine


class Mma(NamedTuple):
    """D = A * B, or D + A * B, as one thread issues it."""

    shape: DescriptorFields
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
    factors: tuple[Factors, ...] = ()
    """Scale factors of A and of B, if it is block-scaled."""

    def kept(self, cta: int) -> Array | None:
        """Which of the 128 lanes of a resident CTA it writes; None: all."""
        words = self.disabled[4 * (cta & 1 if self.shape.group == 2 else 0) :][:4]
        if not any(words):
            return None
        return ~expand(list(words)).reshape(-1)

    @property
    def fused(self) -> bool:
        """Whether D is what tensor.mma gives, as it lies there."""
        shape = self.shape
        scaled_, floating = self.factors or shape.paired, shape.d_type == "f32"
        return floating and shape.kind != "i8" and shape.parts == 1 and not scaled_

    def rows(self) -> int:
        """Rows of A in each CTA."""
        return self.shape.m // self.shape.group

    def matrix_a(self) -> Matrix:
        shape = self.shape
        return Matrix(self.a, self.rows(), shape.element, shape.transpose_a, sm100=True)

    def matrix_b(self) -> Matrix:
        """Each CTA's part of B."""
        shape = self.shape
        return Matrix(self.b, shape.n // shape.group, shape.element, shape.transpose_b, sm100=True)


def _possible(machine: Machine, issuer: Issuer, shape: DescriptorFields) -> bool:
    """Whether there is such an instruction; a finding if there is not."""
    faults = [f"{fault} is not possible" for fault in shape.faults]
    if shape.sparse or shape.negate_a or shape.negate_b or shape.d_type == "":
        raise UnsupportedInstruction(
            f"{issuer.site.where()}: an instruction descriptor with sparsity, negation or a "
            "reserved type."
        )
    for fault in faults:
        machine.report("tensor-descriptor", fault + ".", issuer.site, issuer.place)
    return not faults


def ctas_of(machine: Machine, issuer: Issuer, group: int) -> list[int]:
    """The resident CTAs whose tensor memory an instruction with this cta_group uses."""
    machine.tmem.grouped(group, issuer.site, issuer.place)
    own = machine.cta_of(issuer.place).place
    if group == 1:
        return [own]
    if machine.cluster_size % 2:
        sentence = "cta_group::2 in a cluster of odd size is not possible."
        machine.report("tensor-descriptor", sentence, issuer.site, issuer.place)
        raise Fatal
    return [own & ~1, own | 1]


def queue(machine: Machine, issuer: Issuer) -> tuple[str, int]:
    """What the operations that a CTA issues have in common: they land in the order of issue."""
    return "tensor", machine.cta_of(issuer.place).place


def issue(machine: Machine, issuer: Issuer, mma: Mma) -> None:
    shape = mma.shape
    ctas = ctas_of(machine, issuer, shape.group)
    if not _possible(machine, issuer, shape):
        return
    tally = machine.execution.tally(issuer.site.number)
    tally.operand_wavefronts += (shape.m + shape.n) * K_BYTES // 128

    areas = [_areas(mma, cta) for cta in ctas]
    for written, read in areas:
        for area in (written, *read):
            if area.end > COLUMNS:
                columns = area.end - area.first
                machine.tmem.check(area.cta, area.first, columns, issuer.site, issuer.place)
        machine.tmem.races.issue("an MMA", written, issuer, read)

    matrices = [mma.matrix_b()] if mma.a_in_tmem else [mma.matrix_b(), mma.matrix_a()]
    pairs = itertools.product(ctas, matrices) if machine.late else ()
    touches = tuple(span(machine, cta, matrix) for cta, matrix in pairs)
    land = functools.partial(_land, machine, issuer, mma, dict(zip(ctas, areas, strict=True)))
    queued = queue(machine, issuer)
    machine.engines.issue(Pending("an MMA", land, issuer.site, queued, touches, cta=queued[1]))


def _land(
    machine: Machine, issuer: Issuer, mma: Mma, areas: Mapping[int, tuple[Area, tuple[Area, ...]]]
) -> None:
    """Multiplies; `areas` are what is written and read of tensor memory, by CTA."""
    shape = mma.shape
    machine.clocks.tick()
    for written, read in areas.values():
        machine.tmem.races.land(written, issuer, read)
    parts = [fetch(machine, issuer, cta, mma.matrix_b()) for cta in areas]
    b = _codes(np.concatenate(parts) if len(parts) > 1 else parts[0], shape, shape.b_type)
    for cta, (written, _) in areas.items():
        if mma.a_in_tmem:
            a = _from_tmem(machine, issuer, cta, mma)
        else:
            a = _codes(fetch(machine, issuer, cta, mma.matrix_a()), shape, shape.a_type)
        _multiply(machine, issuer, written, mma, a, b)


def issue_stationary(machine: Machine, issuer: Issuer, mma: Mma, zeros: int) -> None:
    """The same with `.ws`; zeros: a mask of the columns of B that count as zeros."""
    if zeros:
        raise UnsupportedInstruction(f"{issuer.site.where()}: a mask of zero columns.")
    if mma.a_in_tmem and mma.shape.m < LANES:
        sentence = f".ws with A in tensor memory and M = {mma.shape.m}."
        raise UnsupportedInstruction(f"{issuer.site.where()}: {sentence}")
    issue(machine, issuer, mma)


@functools.lru_cache(maxsize=1024)
def _areas(mma: Mma, cta: int) -> tuple[Area, tuple[Area, ...]]:
    """The tensor memory of a CTA that an MMA writes, and what it reads beside it."""
    shape = mma.shape
    first = mma.d & 0xFFFF
    every = _granules(mma.d) if _half(shape) else (0, LANES // GRANULE, 1)
    d = Area(cta, every, first, first + shape.n // shape.parts)
    read = tuple(factors.area(cta) for factors in mma.factors)
    if not mma.a_in_tmem:
        return d, read
    column = mma.a & 0xFFFF
    rows = _granules(mma.a) if _half(shape) else (0, mma.rows() // GRANULE, 1)
    return d, (Area(cta, rows, column, column + K_BYTES // 4), *read)


def _half(shape: DescriptorFields) -> bool:
    """Whether A and D take half of each quarter's lanes: layout F."""
    return shape.m == 64 and not shape.stationary


def _granules(address: int) -> tuple[int, int, int]:
    """The lanes of 64 rows, as an Area has them: one half of each quarter."""
    return address >> 20 & 1, LANES // GRANULE, 2


def _from_tmem(machine: Machine, issuer: Issuer, cta: int, mma: Mma) -> Array:
    """A from tensor memory: rows in the lanes that D's would have, K packed along the columns."""
    shape, column, columns = mma.shape, mma.a & 0xFFFF, K_BYTES // 4
    machine.tmem.check(cta, column, columns, issuer.site, issuer.place)
    lanes = _lanes(shape, mma.a) if _half(shape) else slice(mma.rows())
    words = machine.tmem.data[cta, lanes, column : column + columns]
    data = np.ascontiguousarray(words).view(f"u{shape.element}")
    if shape.a_type in CODE_BITS and not shape.paired:
        return narrow.of_containers(data, CODE_BITS[shape.a_type])
    return _codes(data, shape, shape.a_type)


def _codes(data: Array, shape: DescriptorFields, name: str) -> Array:
    """Codes [rows, K] of a matrix's bytes as they lie in shared memory; pairs lie in tensor memory
    so too."""
    if shape.paired:
        return narrow.of_pairs(data)
    return narrow.of_chunks(data, CODE_BITS[name]) if name in CODE_BITS else data


def _multiply(machine: Machine, issuer: Issuer, area: Area, mma: Mma, a: Array, b: Array) -> None:
    """area: where D lies."""
    shape, tmem, cta = mma.shape, machine.tmem, area.cta
    lanes, window = _lanes(shape, mma.d), slice(area.first, area.end)
    tmem.check(cta, area.first, area.end - area.first, issuer.site, issuer.place)
    if mma.accumulate and not tmem.is_written(area, lanes, window):
        sentence = "an MMA adds to tensor memory that nothing wrote."
        machine.report("tmem-uninitialised", sentence, issuer.site, issuer.place)
    d, kept = tmem.data[cta, lanes, window], mma.kept(cta)
    c = d if mma.accumulate else None
    if shape.parts > 1 and c is not None:
        c = np.concatenate(np.split(c, shape.parts), axis=1)
    if mma.fused and kept is None and isinstance(lanes, slice):
        types = {"a_type": shape.a_type, "b_type": shape.b_type}
        tensor.mma(a, b, c, **types, precision=tensor.TCGEN05, out=d)
        tmem.wrote(area, lanes, window)
        return
    factors = [factor.read(machine, issuer, cta) for factor in mma.factors]
    result = _product(a, b, c, shape, factors)
    if shape.parts > 1:
        result = np.concatenate(np.split(result, shape.parts, axis=1))
    if kept is None:
        tmem.data[cta, lanes, window] = result
        tmem.wrote(area, lanes, window)
        return
    chosen = np.arange(LANES)[lanes]
    result, lanes = result[kept[chosen]], chosen[kept[chosen]]
    tmem.data[cta, lanes, window] = result
    tmem.written[cta, lanes, window] = True


def _lanes(shape: DescriptorFields, address: int) -> Array | slice:
    """Tensor-memory lanes of D's rows, those of each part of N after each other.

    PTX ISA, tcgen05 "Data path layout": row r in lane r, but for 64 rows of one CTA without `.ws`,
    which lie in 16 lanes of each quarter (F), the first ones or, if the address has lane 16, the
    others.
    """
    if _half(shape):
        row = np.arange(64)
        return row // 16 * 32 + row % 16 + (address >> 16 & 16)
    return slice(0, LANES)


def _product(
    a: Array, b: Array, c: Array | None, shape: DescriptorFields, factors: list[Array]
) -> Array:
    a_type, b_type = shape.a_type, shape.b_type
    if shape.paired:
        return scaled.mma_e2m1(a, b, c, *factors, scale_type=shape.scale_type)
    if factors:
        return scaled.mma(a, b, c, *factors, a_type=a_type, b_type=b_type)
    if shape.kind == "i8":
        return tensor.mma_int8(
            a, b, c, a_signed=shape.a_signed, b_signed=shape.b_signed, satfinite=shape.saturate
        )
    if shape.d_type == "f16":
        low = None if c is None else (c & 0xFFFF).astype(np.uint16)
        result = tensor.mma_f16(a, b, low, a_type=a_type, b_type=b_type, precision=tensor.TCGEN05)
        return result.astype(np.uint32)
    return tensor.mma(a, b, c, a_type=a_type, b_type=b_type, precision=tensor.TCGEN05)


def commit(machine: Machine, issuer: Issuer, barrier: int, ranks: int | None) -> None:
    """One arrival when the thread's MMAs so far have landed, in every CTA of the mask of ranks."""
    _, cta, low = machine.shared_offset(issuer.place, barrier & WINDOW, issuer.site)
    ctas = [cta] if ranks is None else machine.multicast(issuer.place, ranks, issuer.site)

    for target in ctas:
        machine.mbarriers.aim(issuer.place, target, low, issuer.site)

    def land() -> None:
        for target in ctas:
            _arrive(machine, issuer, target, low)

    what = "a commit"
    signals = tuple(machine.arena_offset(target, low) for target in ctas)
    queued = queue(machine, issuer)
    operation = Pending(what, land, issuer.site, queued, signals=signals, cta=queued[1])
    machine.engines.issue(operation)


def _arrive(machine: Machine, issuer: Issuer, cta: int, low: int) -> None:
    if machine.ctas[cta].exited:
        sentence = f"a commit arrives in CTA {machine.ctas[cta].number}, which has ended."
        machine.report("remote-cta-exited", sentence, issuer.site, issuer.place)
    barrier = machine.mbarriers.find_in(cta, low, issuer.site)
    if barrier is not None:
        machine.mbarriers.signalled(barrier, issuer.site)
        clocks = machine.clocks
        clocks.tick()
        agent = clocks.tensor + issuer.place % SLOTS
        row = clocks.committed(agent, issuer.place, issuer.seen)
        machine.mbarriers.arrive(barrier, 1, row, issuer.site)
