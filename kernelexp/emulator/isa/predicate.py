"""Comparison and selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelexp.emulator.arithmetic.floats import bf16, f16
from kernelexp.emulator.arithmetic.packed import packed_bool
from kernelexp.emulator.decode import Decoder, copyto
from kernelexp.emulator.isa.floating import FORMATS
from kernelexp.emulator.isa.integer import typed
from kernelexp.emulator.isa.registry import Op, alu, builder, modifiers
from kernelexp.emulator.ptx.syntax import Instruction, Not, Operand, Pair
from kernelexp.emulator.slots import Array

_COMPARE: dict[str, Any] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_COMBINE: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_INT_TYPES = "b16|b32|b64|u16|u32|u64|s16|s32|s64"
_INT_OPS = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs"
_FLOAT_OPS = "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"
_BOOL = "{b:|.and|.or|.xor}"
_HALVES: dict[str, Any] = {"f16": f16, "bf16": bf16}


def _comparison(op: str, t: str, ftz: bool) -> Callable[[Array, Array], Array]:
    if t in ("f32", "f64", "f16", "bf16"):
        compare = (FORMATS | _HALVES)[t].compare

        def floating(a: Array, b: Array) -> Array:
            result: Array = compare(a, b, op, ftz=ftz)
            return result

        return floating
    function = _COMPARE[op]

    def integer(a: Array, b: Array) -> Array:
        result: Array = function(typed(a, t), typed(b, t))
        return result

    return function if t[0] != "s" else integer


@builder(f"setp.{{o:{_INT_OPS}}}{_BOOL}.{{t:{_INT_TYPES}}}")
@builder(f"setp.{{o:{_FLOAT_OPS}}}{_BOOL}{{ftz:|.ftz}}.{{t:f32|f64|f16|bf16}}")
def setp(ins: Instruction, d: Decoder) -> Op:
    """Both results p|q, and the combination with a further predicate."""
    parts = modifiers(ins)
    t = parts[-1]
    compare = _comparison(parts[1], t, "ftz" in parts)
    combine = next((_COMBINE[part] for part in parts if part in _COMBINE), None)
    first, second = _pair(ins.operands[0])
    p = d.destination(first, ins)
    q = d.destination(second, ins) if second is not None else None
    a, b = (d.source(operand, t, ins) for operand in ins.operands[1:3])
    c, flip = _predicate(d, ins, ins.operands[3]) if combine is not None else (0, False)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        copyto(R[p], compare(R[a], R[b]), where=m)

    def full(R: list[Array], m: Any, warps: Any) -> None:
        result = compare(R[a], R[b])
        other = ~result
        if combine is not None:
            with_ = ~R[c] if flip else R[c].copy()
            result, other = combine(result, with_), combine(other, with_)
        copyto(R[p], result, where=m)
        if q is not None:
            copyto(R[q], other, where=m)

    return op if combine is None and q is None else full


def _pair(operand: Operand) -> tuple[Operand, Operand]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


def _predicate(d: Decoder, ins: Instruction, operand: Operand) -> tuple[int, bool]:
    if isinstance(operand, Not):
        return d.source(operand.operand, "pred", ins), True
    return d.source(operand, "pred", ins), False


@builder(f"setp.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}.{{t:f16x2|bf16x2}}")
def setp_packed(ins: Instruction, d: Decoder) -> Op:
    """p|q are the results of the low and the high half."""
    parts = modifiers(ins)
    kind = _HALVES[parts[-1].removesuffix("x2")]
    name = parts[1]
    first, second = _pair(ins.operands[0])
    p, q = d.destination(first, ins), d.destination(second, ins)
    a, b = (d.source(operand, parts[-1], ins) for operand in ins.operands[1:3])

    def op(R: list[Array], m: Any, warps: Any) -> None:
        low, high = packed_bool(kind.compare, R[a], R[b], name)
        copyto(R[p], low, where=m)
        copyto(R[q], high, where=m)

    return op


@builder(f"set.{{o:{_INT_OPS}}}.{{d:u32|s32|f32}}.{{t:{_INT_TYPES}}}")
@builder(f"set.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}.{{d:u32|s32|f32}}.{{t:f32|f64|f16|bf16}}")
def set_(ins: Instruction, d: Decoder) -> Op:
    """All ones (or 1.0) where the comparison holds."""
    parts = modifiers(ins)
    t = parts[-1]
    compare = _comparison(parts[1], t, "ftz" in parts)
    yes = 0x3F80_0000 if parts[-2] == "f32" else 0xFFFF_FFFF
    target = d.destination(ins.operands[0], ins)
    a, b = (d.source(operand, t, ins) for operand in ins.operands[1:3])

    def op(R: list[Array], m: Any, warps: Any) -> None:
        result = np.where(compare(R[a], R[b]), np.uint32(yes), np.uint32(0))
        copyto(R[target], result, where=m)

    return op


@builder(f"set.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}.{{d:f16x2|bf16x2|u32|s32}}.{{t:f16x2|bf16x2}}")
@builder(f"set.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}.{{d:f16|bf16|u16|s16}}.{{t:f16|bf16}}")
def set_half(ins: Instruction, d: Decoder) -> Op:
    """1.0, or all ones, in each half for which the comparison holds."""
    parts = modifiers(ins)
    op_name, to, t = parts[1], parts[-2], parts[-1]
    compare = _HALVES[t.removesuffix("x2")].compare
    yes = {"f16": 0x3C00, "bf16": 0x3F80}.get(to.removesuffix("x2"), 0xFFFF)
    target = d.destination(ins.operands[0], ins)
    a, b = (d.source(operand, t, ins) for operand in ins.operands[1:3])
    packed = t.endswith("x2")

    def op(R: list[Array], m: Any, warps: Any) -> None:
        if packed:
            low, high = packed_bool(compare, R[a], R[b], op_name)
            result = low * np.uint32(yes) | high * np.uint32(yes << 16)
        else:
            result = compare(R[a], R[b], op_name) * np.uint16(yes)
        copyto(R[target], result, where=m)

    return op


@alu("selp.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "t t t pred")
def selp(a: Array, b: Array, p: Array) -> Array:
    return np.where(p, a, b)


@alu("slct.{t:b32|b64|u32|u64|s32|s64|f32|f64|b16|u16|s16}.s32", "t t t s32")
def slct(a: Array, b: Array, c: Array) -> Array:
    return np.where(typed(c, "s32") >= 0, a, b)


@alu("slct{ftz:|.ftz}.{t:b32|b64|u32|u64|s32|s64|f32|f64}.f32", "t t t f32")
def slct_float(a: Array, b: Array, c: Array) -> Array:
    """-0 counts as at least 0, a NaN doesn't."""
    return np.where(c.view(np.float32) >= 0, a, b)
