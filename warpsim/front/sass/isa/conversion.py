"""Between floating-point formats, and between them and integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.arithmetic import convert
from warpsim.front.sass.decoder import SassDecoder, applied
from warpsim.front.sass.operands import Reader
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, Operand
from warpsim.machine.core.arrays import Array
from warpsim.machine.wave.machine import Op

_ROUND = "{:|.RZ|.RM|.RP}"
_FLOATS = ("F16", "BF16", "F32", "F64")
_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_INTEGRAL = {"TRUNC": "rzi", "FLOOR": "rmi", "CEIL": "rpi"}


def _source(d: SassDecoder, operand: Operand, kind: str) -> Reader:
    """A source in floating-point format `kind`."""
    if kind == "F64":
        return d.double(operand)
    return d.real(operand) if kind == "F32" else d.half(operand)


def _to(d: SassDecoder, operand: Operand, kind: str, compute: Callable[[list[Array]], Array]) -> Op:
    """Writes what is computed as a number of `kind`, one narrower than a word with zeros above."""
    if kind in ("F64", "U64", "S64"):
        write = d.to_pair(operand)
        return lambda R, m, warps: write(R, compute(R), m)
    return applied(d.to(operand), lambda x: x.astype(np.uint32), (compute,))


def _rounding(d: SassDecoder) -> str:
    return next((r for r in ("RZ", "RM", "RP") if r in d.modifiers), "RN").lower()


@covers(f"F2F{{:|.FTZ}}.F32.F64{_ROUND}", "F2F{:|.FTZ}.F64.F32")
@covers(f"F2F.{{:F16|BF16}}.{{:F32|F64}}{_ROUND}", "F2F.{:F32|F64}.{:F16|BF16}")
@covers("F2F.F16.BF16", "F2F.BF16.F16")
def f2f(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    to, source = (modifier for modifier in d.instruction.modifiers if modifier in _FLOATS)
    read, rounding, ftz = _source(d, a, source), _rounding(d), "FTZ" in d.modifiers
    return _to(
        d,
        target,
        to,
        lambda R: convert.floating(read(R), source.lower(), to.lower(), rounding=rounding, ftz=ftz),
    )


@covers("FRND{:|.FTZ}{:|.TRUNC|.FLOOR|.CEIL}", "FRND.{:F16|BF16|F64}{:|.TRUNC|.FLOOR|.CEIL}")
def frnd(d: SassDecoder) -> Op:
    """To an integral value, the nearest unless a modifier says which."""
    target, a = d.take(d.operands, 2)
    kind = next((modifier for modifier in d.modifiers if modifier in _FLOATS), "F32")
    read, rounding = _source(d, a, kind), _integral(d)
    name, ftz = kind.lower(), "FTZ" in d.modifiers
    return _to(
        d, target, kind, lambda R: convert.floating(read(R), name, name, rounding=rounding, ftz=ftz)
    )


def _integral(d: SassDecoder) -> str:
    return next((_INTEGRAL[modifier] for modifier in _INTEGRAL if modifier in d.modifiers), "rni")


@covers("F2I{:|.FTZ}{:|.U8|.S8|.U16|.S16|.U32}{:|.F16|.BF16}{:|.TRUNC|.FLOOR|.CEIL}.NTZ")
@covers("F2I{:|.FTZ}.{:U64|S64}{:|.F16|.BF16|.F64}{:|.TRUNC|.FLOOR|.CEIL}")
@covers("F2I{:|.U8|.S8|.U16|.S16|.U32}.F64{:|.TRUNC|.FLOOR|.CEIL}")
def f2i(d: SassDecoder) -> Op:
    """The nearest integer of the type, extended to a word; of a NaN 0 (`.NTZ`), else 0x80...0."""
    target, a = d.take(d.operands, 2)
    to = next((modifier for modifier in d.modifiers if modifier in _INTEGERS), "S32")
    source = next((modifier for modifier in d.modifiers if modifier in _FLOATS), "F32")
    read, rounding, ftz = _source(d, a, source), _integral(d), "FTZ" in d.modifiers
    return _to(
        d,
        target,
        to,
        lambda R: convert.float_to_int(
            read(R), source.lower(), to.lower(), rounding=rounding, ftz=ftz
        ),
    )


@covers("F2IP.U8.F32{:|.TRUNC}.NTZ")
def f2ip(d: SassDecoder) -> Op:
    """The nearest byte to f32, extended by zeros. What else would be packed must be nothing."""
    target, a, b, c = d.take(d.operands, 4)
    if any(getattr(operand, "index", 0) != ZERO for operand in (a, c)):
        raise d.refuse("packs more than one number, which is not covered")
    read, rounding = d.real(b), _integral(d)
    return _to(
        d, target, "U8", lambda R: convert.float_to_int(read(R), "f32", "u8", rounding=rounding)
    )


@covers("I2IP.{:U8|S8|U16|S16}.S32.SAT")
def i2ip(d: SassDecoder) -> Op:
    """Two integers to the nearest of a narrow type, the first above; above them is the third
    source."""
    target, a, b, c = d.take(d.operands, 4)
    kind = d.instruction.modifiers[0]
    bits = int(kind[1:])
    mask = np.uint32((1 << bits) - 1)

    def function(x: Array, y: Array, rest: Array) -> Array:
        high, low = (
            convert.int_to_int(source, "s32", kind.lower(), sat=True).astype(np.uint32) & mask
            for source in (x, y)
        )
        above = rest << np.uint32(2 * bits) if bits == 8 else np.uint32(0)
        return above | high << np.uint32(bits) | low

    return applied(d.to(target), function, (d.bits(a), d.bits(b), d.bits(c)))


@covers(f"I2F{{:|.F16|.BF16|.F64}}{{:|.U8|.S8|.U16|.S16|.U32|.U64|.S64}}{_ROUND}")
@covers(f"I2FP.F32.{{:S32|U32}}{_ROUND}")
def i2f(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    source = next((modifier for modifier in d.modifiers if modifier in _INTEGERS), "S32")
    to = next((modifier for modifier in d.modifiers if modifier in _FLOATS), "F32")
    read = d.pair(a) if source in ("U64", "S64") else d.narrow(a)
    rounding = _rounding(d)
    op = _to(
        d,
        target,
        to,
        lambda R: convert.int_to_float(read(R), source.lower(), to.lower(), rounding=rounding),
    )
    if to != "F32" or source not in ("U32", "S32"):
        return op
    return d.formed(op, f"cvt.{rounding}.f32.{source.lower()}", target, (a,))


_PAIR = "{:F16|BF16}"


@covers(f"F2FP{{:|.RELU}}.{_PAIR}.F32.PACK_AB{{:|.RZ}}", "F2FP{:|.RELU}{:|.BF16}.PACK_AB{:|.RZ}")
def f2fp(d: SassDecoder) -> Op:
    """Two f32 to a pair, the first in the upper half; before Hopper the types are not spelled."""
    target, a, b = d.take(d.operands, 3)
    kind = "bf16" if "BF16" in d.modifiers else "f16"
    rounding, relu = _rounding(d), "RELU" in d.modifiers
    op = applied(
        d.to(target),
        lambda x, y: convert.pack_x2(x, y, kind, rounding=rounding, relu=relu),
        (d.real(a), d.real(b)),
    )
    name = f"cvt.{rounding}{'.relu' * relu}.{kind}x2.f32"
    return d.formed(op, name, target, (a, b), real=True)


@covers(f"F2FP.RELU.{_PAIR}.F32.MERGE_C", "F2FP.RELU{:|.BF16}.MERGE_C")
def f2fp_merge(d: SassDecoder) -> Op:
    """One f32 to the lower half; the upper one is the second source's."""
    target, a, c = d.take(d.operands, 3)
    kind = "bf16" if "BF16" in d.modifiers else "f16"

    def function(x: Array, rest: Array) -> Array:
        low = convert.floating(x, "f32", kind, relu=True).astype(np.uint32)
        return rest & np.uint32(0xFFFF_0000) | low

    return applied(d.to(target), function, (d.real(a), d.bits(c)))


@covers("F2FP{:|.RELU}.TF32.F32.PACK_B{:|.RZ}")
def f2fp_tf32(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    rounding, relu = _rounding(d), "RELU" in d.modifiers
    return applied(
        d.to(target),
        lambda x: convert.floating(x, "f32", "tf32", rounding=rounding, relu=relu),
        (d.real(a),),
    )


_FP8 = "{:E4M3|E5M2}"


@covers(f"F2FP.SATFINITE{{:|.RELU}}.{_FP8}.F32.PACK_AB_MERGE_C")
def f2fp_fp8(d: SassDecoder) -> Op:
    """Two f32 to FP8 codes in the lower half, the first above; the upper half is the lower one of
    the third source."""
    target, a, b, c = d.take(d.operands, 4)
    kind, relu = _fp8(d), "RELU" in d.modifiers

    def function(x: Array, y: Array, rest: Array) -> Array:
        low = convert.pack_x2(x, y, kind, relu=relu).astype(np.uint32)
        return rest << np.uint32(16) | low

    return applied(d.to(target), function, (d.real(a), d.real(b), d.bits(c)))


def _fp8(d: SassDecoder) -> str:
    return next(
        modifier for modifier in d.instruction.modifiers if modifier in ("E4M3", "E5M2")
    ).lower()


@covers(f"F2FP.SATFINITE{{:|.RELU}}.{_FP8}.F16.UNPACK_B_MERGE_C")
def f2fp_fp8_of_pair(d: SassDecoder) -> Op:
    """Two f16 to FP8 codes in the lower half; the upper half as before."""
    target, a, c = d.take(d.operands, 3)
    kind, relu = _fp8(d), "RELU" in d.modifiers

    def function(x: Array, rest: Array) -> Array:
        low = convert.pack_fp8x2(x, "f16", kind, relu=relu).astype(np.uint32)
        return rest << np.uint32(16) | low

    return applied(d.to(target), function, (d.bits(a), d.bits(c)))


@covers(f"F2FP{{:|.RELU}}.F16.{_FP8}.UNPACK_B")
def f2fp_of_fp8(d: SassDecoder) -> Op:
    """Two FP8 codes of a half (`.H1` the upper one) to f16."""
    target, a = d.take(d.operands, 2)
    kind, relu = _fp8(d), "RELU" in d.modifiers
    return applied(d.to(target), lambda x: convert.unpack_fp8x2(x, kind, relu=relu), (d.half(a),))
