"""Stores and reductions in the shared memory of another CTA that signal an mbarrier there"""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.reductions import reduction
from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.sass.operands import Reader
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import MemoryOperand, Operand, RegisterOperand
from warpsim.machine.copies import remote
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.wave.machine import Op, WarpSet

_TYPES = {"": "u32", "S32": "s32", "64": "u64"}


def _places(d: SassDecoder, operand: Operand) -> tuple[Reader, Reader]:
    """[R.64+0x10]: the address of the data but for the offset, and that of the mbarrier, in a
    register each."""
    base = operand.base if isinstance(operand, MemoryOperand) else None
    offset = operand.offset if isinstance(operand, MemoryOperand) else 0
    if base is None or base.part != "64" or operand != MemoryOperand(base=base, offset=offset):
        raise d.refuse("has an address that is not covered")
    data, barrier = d.words(RegisterOperand(file=base.file, index=base.index), 2)
    place = np.uint32(offset & 0xFFFF_FFFF)
    return (lambda R: R[data] + place), (lambda R: R[barrier])


@covers("STAS{:|.64|.128}")
def store(d: SassDecoder) -> Op:
    """Lands late, then completes its bytes on the mbarrier."""
    address, source = d.take(d.operands, 2)
    to, barrier = _places(d, address)
    count = next((int(width) // 32 for width in ("64", "128") if width in d.modifiers), 1)
    slots = d.words(d.unsigned(source), count)
    access = AccessKind(d.site, 4, count, store=True, relaxed=True)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = np.stack([R[slot] for slot in slots], axis=-1)
        values = values[..., 0].copy() if count == 1 else values
        remote.store(warps, to(R), values, barrier(R), access, m)

    return op


@covers("REDAS.{:ADD|MIN|MAX}{:|.S32}", "REDAS.{:INC|DEC|AND|OR|XOR}", "REDAS.ADD.64")
def reduce(d: SassDecoder) -> Op:
    """Lands late, then completes its bytes on the mbarrier."""
    address, source = d.take(d.operands, 2)
    to, barrier = _places(d, address)
    name, *rest = d.instruction.modifiers
    kind = _TYPES[rest[0] if rest else ""]
    read = d.pair(source) if kind == "u64" else d.bits(source)
    access = AccessKind(d.site, 8 if kind == "u64" else 4, 1, store=True, relaxed=True)
    d.note_unit("shared", access.element)
    function = reduction(name.lower(), kind)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        remote.reduce(warps, to(R), read(R), barrier(R), function, access, m)

    return op
