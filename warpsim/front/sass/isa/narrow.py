"""Between floating-point formats and those of 4 and 6 bits, and scale factors"""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic import narrow, packed
from warpsim.arithmetic.half import f32_from_bf16
from warpsim.arithmetic.matrices import scaled
from warpsim.front.sass.decoder import SassDecoder, applied
from warpsim.front.sass.operands import Reader, part_of
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import Operand, RegisterOperand
from warpsim.machine.core.arrays import Array
from warpsim.machine.wave.machine import Op

_KINDS = {"E2M1": 8, "E2M3": 16, "E3M2": 16}
"""Bits of a pair of codes."""
_SPELLED = f"{{:{'|'.join(_KINDS)}}}"


def _kind(d: SassDecoder) -> str:
    return next(modifier for modifier in d.instruction.modifiers if modifier in _KINDS)


@covers(f"F2FP.SATFINITE{{:|.RELU}}.{_SPELLED}.F32.PACK_AB_MERGE_C")
def pack(d: SassDecoder) -> Op:
    """Two f32 to a pair of codes in the lowest bits, the first above; above them is the third
    source."""
    target, a, b, c = d.take(d.operands, 4)
    kind, relu = _kind(d), "RELU" in d.modifiers
    name, bits = kind.lower(), np.uint32(_KINDS[kind])

    def function(x: Array, y: Array, rest: Array) -> Array:
        return rest << bits | narrow.pack(x, y, name, relu=relu).astype(np.uint32)

    return applied(d.to(target), function, (d.real(a), d.real(b), d.bits(c)))


@covers(f"F2FP{{:|.RELU}}.F16.{_SPELLED}.UNPACK_B")
def unpack(d: SassDecoder) -> Op:
    """The pair of codes in a byte (`.B1` the second), or in a half, to f16."""
    target, a = d.take(d.operands, 2)
    kind, relu = _kind(d), "RELU" in d.modifiers
    read = _byte(d, a) if _KINDS[kind] == 8 else d.half(a)
    return applied(d.to(target), lambda pair: narrow.unpack(pair, kind.lower(), relu=relu), (read,))


def _byte(d: SassDecoder, operand: Operand) -> Reader:
    """One byte of a register, uint8."""
    part = part_of(operand)
    if not isinstance(operand, RegisterOperand) or part not in ("", "B1", "B2", "B3"):
        raise d.refuse("has an operand that is not covered")
    slot, shift = d.word_of(operand), np.uint32(8 * int(part[1:] or "0"))
    return lambda R: (R[slot] >> shift).astype(np.uint8)


@covers("F2FP{:|.SATFINITE}.E8.F32.PACK_AB_MERGE_C.{:RZ|RP}")
def pack_scales(d: SassDecoder) -> Op:
    """The exponents of two f32 as scale factors in the lower half, the first above; the upper half
    is the lower one of the third source."""
    target, a, b, c = d.take(d.operands, 4)
    up, satfinite = "RP" in d.modifiers, "SATFINITE" in d.modifiers

    def function(x: Array, y: Array, rest: Array) -> Array:
        low = scaled.pack_ue8m0(x, y, up=up, satfinite=satfinite).astype(np.uint32)
        return rest << np.uint32(16) | low

    return applied(d.to(target), function, (d.real(a), d.real(b), d.bits(c)))


@covers("F2FP{:|.SATFINITE}.E8.BF16.UNPACK_B_MERGE_C.{:RZ|RP}")
def pack_scales_of_pair(d: SassDecoder) -> Op:
    """The same of two bf16."""
    target, a, c = d.take(d.operands, 3)
    up, satfinite = "RP" in d.modifiers, "SATFINITE" in d.modifiers

    def function(pair: Array, rest: Array) -> Array:
        low, high = (f32_from_bf16(half) for half in packed.halves(pair))
        codes = scaled.pack_ue8m0(high, low, up=up, satfinite=satfinite).astype(np.uint32)
        return rest << np.uint32(16) | codes

    return applied(d.to(target), function, (d.bits(a), d.bits(c)))


@covers("F2FP.BF16.E8.UNPACK_B")
def unpack_scales(d: SassDecoder) -> Op:
    """Two scale factors of a half to bf16."""
    target, a = d.take(d.operands, 2)
    return applied(d.to(target), scaled.unpack_ue8m0, (d.half(a),))
