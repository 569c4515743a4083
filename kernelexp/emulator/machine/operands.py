"""Matrix operands in shared memory: descriptors to addresses to bytes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from kernelexp.emulator.machine.arena import UNWRITTEN
from kernelexp.emulator.machine.spaces import SHARED_RESERVED
from kernelexp.emulator.machine.tma import CHUNK_BYTES, swizzled
from kernelexp.emulator.ptx.faults import UnsupportedInstruction
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.asynchronous import Issuer
    from kernelexp.emulator.machine.machine import Machine

# Bits 63:61 of an sm_100 descriptor, 63:62 of an sm_90 one (PTX ISA, "Matrix descriptor").
SWIZZLES_SM100 = {0: "none", 2: "128B", 4: "64B", 6: "32B"}
SWIZZLES_SM90 = {0: "none", 1: "128B", 2: "64B", 3: "32B"}
_ROW_BYTES = {"128B": 128, "64B": 64, "32B": 32, "none": 16}


class Descriptor:
    """A shared-memory matrix descriptor, its fields in bytes."""

    def __init__(self, value: int, sm100: bool) -> None:
        self.start = (value & 0x3FFF) << 4
        self.leading = (value >> 16 & 0x3FFF) << 4
        self.stride = (value >> 32 & 0x3FFF) << 4
        self.base_offset = value >> 49 & 7
        self.version = value >> 46 & 3
        code = value >> 61 if sm100 else value >> 62
        self.swizzle = (SWIZZLES_SM100 if sm100 else SWIZZLES_SM90).get(code)


@functools.lru_cache(maxsize=8192)
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


@functools.lru_cache(maxsize=8192)
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


def fetch(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    value: int,
    rows: int,
    k: int,
    element: int,
    transposed: bool,
    sm100: bool,
    ins: Instruction,
) -> Array:
    """An operand of `rows` x `k` elements as unsigned codes, read by the tensor core of a CTA."""
    d = Descriptor(value, sm100)
    if d.swizzle is None or d.base_offset:
        raise UnsupportedInstruction(
            f"{ins.where()}: matrix descriptor {value:#018x} has a swizzle mode or a base offset "
            "that the emulator does not model."
        )
    if sm100 and d.version != 1:
        machine.found(
            "tensor-descriptor",
            f"matrix descriptor {value:#018x} has {d.version:#05b} where bits 47:46 must be 0b01.",
            ins,
            issuer.place,
        )
    if transposed:
        index = mn_major(d.start, d.leading, d.stride, d.swizzle, rows, k, element)
        low, high = int(index.min()), int(index.max()) + element
    else:
        index = k_major(d.start, d.leading, d.stride, d.swizzle, rows, k * element)
        low, high = int(index.min()), int(index.max()) + CHUNK_BYTES
    base = machine.arena_offset(cta, 0)
    if low < SHARED_RESERVED or high > machine.layout.end:
        machine.found(
            "out-of-bounds",
            f"an operand of {rows} x {k} reaches shared {low:#x} to {high:#x} of CTA "
            f"{machine.ctas[cta].number}, outside its memory.",
            ins,
            issuer.place,
        )
        return np.zeros((rows, k), f"u{element}")
    _watch(machine, issuer, base + index, element if transposed else CHUNK_BYTES, ins)
    if transposed:
        result: Array = machine.shared.view(element, 1)[(base + index) // element]
        return result
    data = machine.shared.view(8, 2)[(base + index) // CHUNK_BYTES]
    return np.ascontiguousarray(data).reshape(rows, -1).view(f"u{element}")


def _watch(machine: Machine, issuer: Issuer, offsets: Array, size: int, ins: Instruction) -> None:
    # One unit a chunk stands for all of it: what is stored in smaller pieces by different threads
    # is told apart by its first bytes only.
    units = (offsets // machine.clocks.unit).ravel()
    machine.races.engine_read(
        units, issuer.thread, issuer.seen, issuer.fence, machine.clocks.tensor, ins
    )
    states = machine.shared.state[offsets]
    if (states == UNWRITTEN).any():
        first = int(offsets[states == UNWRITTEN][0])
        machine.found(
            "uninitialised-read",
            f"the tensor core reads {machine.shared_name(first)}, which nobody wrote.",
            ins,
            issuer.place,
        )
