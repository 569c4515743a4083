"""Matrix operands in shared memory: descriptors to addresses to bytes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.clocks import SLOTS
from warpsim.machine.core.site import UnsupportedInstruction
from warpsim.machine.memory.arena import OUTSIDE, UNWRITTEN
from warpsim.machine.memory.layout import SHARED_RESERVED
from warpsim.machine.memory.tma import CHUNK_BYTES, swizzled
from warpsim.machine.wave.machine import Machine

# Bits 63:61 of an sm_100 descriptor, 63:62 of an sm_90 one (PTX ISA, "Matrix descriptor").
SWIZZLES_SM100 = {0: "none", 2: "128B", 4: "64B", 6: "32B"}
SWIZZLES_SM90 = {0: "none", 1: "128B", 2: "64B", 3: "32B"}
RESERVED_SM100 = 1 << 48 | 0xFF << 53
K_BYTES = 32
"""Every dense instruction takes 32 bytes of K per row (PTX ISA, tcgen05 "Matrix shapes")."""
_ROW_BYTES = {"128B": 128, "64B": 64, "32B": 32, "none": 16}


class Descriptor:
    """A shared-memory matrix descriptor, its fields in bytes."""

    def __init__(self, value: int, sm100: bool) -> None:
        self.start = (value & 0x3FFF) << 4
        self.leading = (value >> 16 & 0x3FFF) << 4
        self.stride = (value >> 32 & 0x3FFF) << 4
        self.base_offset = value >> 49 & 7
        self.version = value >> 46 & 3
        self.reserved = value & RESERVED_SM100 if sm100 else 0
        code = value >> 61 if sm100 else value >> 62
        self.swizzle = (SWIZZLES_SM100 if sm100 else SWIZZLES_SM90).get(code)


@functools.lru_cache(maxsize=8192)
def descriptor(value: int, sm100: bool) -> Descriptor:
    return Descriptor(value, sm100)


class Matrix(NamedTuple):
    """An operand of `rows` (of M or N) x K, as an instruction names it."""

    descriptor: int
    rows: int
    element: int
    """Bytes."""
    transposed: bool
    sm100: bool
    row_bytes: int = K_BYTES
    """Of K, or of what a copy takes of each row."""

    @property
    def k(self) -> int:
        return self.row_bytes // self.element


def k_major(
    start: int, leading: int, stride: int, swizzle: str, rows: int, row_bytes: int
) -> Array:
    """Addresses of the 16-byte chunks of a K-major operand: [rows, row_bytes / 16].

    Row r begins r // 8 strides and r % 8 rows of the swizzle's width from the start. Without a
    swizzle, 8 rows of 16 bytes make a core matrix, and `leading` goes to the next along K.
    """
    row = np.arange(rows)[:, None]
    chunk = np.arange(row_bytes // CHUNK_BYTES)[None, :]
    along = chunk * (leading if swizzle == "none" else CHUNK_BYTES)
    address = start + row // 8 * stride + row % 8 * _ROW_BYTES[swizzle] + along
    return swizzled(address, swizzle)


def mn_major(
    start: int, leading: int, stride: int, swizzle: str, rows: int, k: int, element: int
) -> Array:
    """Byte addresses of a transposed operand's elements: [rows, k].

    Rows (of M or N) are contiguous: a swizzle-wide run of them, then `leading` to the next run;
    8 values of k make a swizzle atom, then `stride` to the next 8. Without a swizzle the two change
    places (PTX ISA, "Canonical layouts").
    """
    width = _ROW_BYTES[swizzle]
    row = np.arange(rows)[:, None] * element
    at = np.arange(k)[None, :]
    run, group = (stride, leading) if swizzle == "none" else (leading, stride)
    address = start + row // width * run + row % width + at % 8 * width + at // 8 * group
    return swizzled(address, swizzle)


class Pieces(NamedTuple):
    """Where an operand lies in its CTA's shared memory."""

    offsets: Array
    """Of its pieces, [rows, n]: chunks of 16 bytes, or elements."""
    width: int
    """Bytes of a piece."""
    low: int
    high: int
    """The first byte, and the one after the last."""


@functools.lru_cache(maxsize=8192)
def _pieces(matrix: Matrix, swizzle: str) -> Pieces:
    d = descriptor(matrix.descriptor, matrix.sm100)
    fields, width = (d.start, d.leading, d.stride, swizzle, matrix.rows), CHUNK_BYTES
    if matrix.transposed:
        index, width = mn_major(*fields, matrix.k, matrix.element), matrix.element
    else:
        index = k_major(*fields, matrix.row_bytes)
    return Pieces(index, width, int(index.min()), int(index.max()) + width)


def span(machine: Machine, cta: int, matrix: Matrix) -> tuple[int, int]:
    """Arena range of an operand, for telling overlaps: its first row to its last."""
    d = descriptor(matrix.descriptor, matrix.sm100)
    base, row_bytes = machine.arena_offset(cta, d.start), matrix.row_bytes
    return base, base + (0 if matrix.transposed else (matrix.rows - 1) // 8 * d.stride) + row_bytes


def _descriptor(machine: Machine, issuer: Issuer, matrix: Matrix) -> tuple[Descriptor, str]:
    """The descriptor and its swizzle, checked."""
    d = descriptor(matrix.descriptor, matrix.sm100)
    if d.swizzle is None or d.base_offset:
        raise UnsupportedInstruction(
            f"{issuer.site.where()}: matrix descriptor {matrix.descriptor:#018x} has a swizzle "
            "mode or a base offset that the emulator does not model."
        )
    if matrix.sm100 and d.version != 1:
        sentence = (
            f"matrix descriptor {matrix.descriptor:#018x} has {d.version:#05b} where bits 47:46 "
            "must be 0b01."
        )
        machine.report("tensor-descriptor", sentence, issuer.site, issuer.place)
    if d.reserved:
        sentence = (
            f"matrix descriptor {matrix.descriptor:#018x} has {d.reserved:#x} in its reserved bits."
        )
        machine.report("tensor-descriptor", sentence, issuer.site, issuer.place)
    return d, d.swizzle


def fetch(machine: Machine, issuer: Issuer, cta: int, matrix: Matrix) -> Array:
    """An operand's elements as unsigned codes [rows, K], read by the tensor core of a CTA."""
    _, swizzle = _descriptor(machine, issuer, matrix)
    offsets, width, low, high = _pieces(matrix, swizzle)
    kind = f"u{matrix.element}"
    if low < SHARED_RESERVED or high > machine.layout.end:
        sentence = (
            f"an operand of {matrix.rows} x {matrix.k} reaches shared {low:#x} to {high:#x} of CTA "
            f"{machine.ctas[cta].number}, outside its memory."
        )
        machine.report("out-of-bounds", sentence, issuer.site, issuer.place)
        return np.zeros((matrix.rows, matrix.k), kind)
    base, agent = machine.arena_offset(cta, 0), machine.clocks.tensor + issuer.place % SLOTS
    fast = machine.shared_space.fast
    data = fast.read_pieces(offsets, base, width, issuer, agent) if fast else None
    if data is None:
        _watch(machine, issuer, base + offsets, agent)
        form = (8, 2) if width == CHUNK_BYTES else (width, 1)
        data = np.ascontiguousarray(machine.shared.view(*form)[(base + offsets) // width])
    return data.reshape(matrix.rows, -1).view(kind)


def _watch(machine: Machine, issuer: Issuer, offsets: Array, agent: int) -> None:
    # One unit a chunk stands for all of it: what is stored in smaller pieces by different threads
    # is told apart by its first bytes only.
    units = (offsets // machine.races.history.unit).ravel()
    machine.races.engine_read(units, issuer, agent)
    states = machine.shared.state[offsets]
    if (states == OUTSIDE).any():
        name = machine.shared_name(int(offsets[states == OUTSIDE][0]))
        sentence = f"the tensor core reads {name}, outside every variable."
        machine.report("out-of-bounds", sentence, issuer.site, issuer.place)
    elif (states == UNWRITTEN).any():
        name = machine.shared_name(int(offsets[states == UNWRITTEN][0]))
        sentence = f"the tensor core reads {name}, which was never written."
        machine.report("uninitialised-read", sentence, issuer.site, issuer.place)
