"""Comparison and selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpsim.arithmetic.floats import bf16, f16, f32
from warpsim.arithmetic.integers import typed
from warpsim.arithmetic.packed import packed_bool
from warpsim.front.ptx.decoder import PtxDecoder, copyto, pair
from warpsim.front.ptx.isa.floating import FORMATS
from warpsim.front.ptx.registry import alu, builder
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.registers import RegisterPart
from warpsim.machine.wave.machine import Op, WarpSet

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
            return compare(a, b, op, ftz=ftz)

        return floating
    function = _COMPARE[op]

    def integer(a: Array, b: Array) -> Array:
        return function(typed(a, t), typed(b, t))

    return function if t[0] != "s" else integer


@builder(f"setp.{{o:{_INT_OPS}}}{_BOOL}.{{t:{_INT_TYPES}}}")
@builder(f"setp.{{o:{_FLOAT_OPS}}}{_BOOL}{{ftz:|.ftz}}.{{t:f32|f64|f16|bf16}}")
def setp(d: PtxDecoder) -> Op:
    """Both results p|q, and the combination with a further predicate."""
    parts = d.parts
    t = parts[-1]
    compare = _comparison(parts[1], t, "ftz" in parts)
    combine = next((_COMBINE[part] for part in parts if part in _COMBINE), None)
    first, second = pair(d.operands[0])
    p = d.destination(first)
    q = d.destination(second) if second is not None else None
    a, b = (d.source(operand, t) for operand in d.operands[1:3])
    c, flip = d.predicate(d.operands[3]) if combine is not None else (0, False)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[p], compare(R[a], R[b]), where=m)

    def full(R: list[Array], m: Mask, warps: WarpSet) -> None:
        result = compare(R[a], R[b])
        other = ~result
        if combine is not None:
            with_ = ~R[c] if flip else R[c].copy()
            result, other = combine(result, with_), combine(other, with_)
        copyto(R[p], result, where=m)
        if q is not None:
            copyto(R[q], other, where=m)

    combined = combine is not None
    name = ".".join(part for part in parts if part not in _COMBINE)
    slots = (p, -1 if q is None else q, a, b, c if combined else -1)
    number = 1 + [*_COMBINE.values()].index(combine) if combined else 0
    if not isinstance(d.slots[p], RegisterPart):
        return full
    return Formed(
        full if combined or q is not None else op, CompiledForm(name, slots, (number, int(flip)))
    )


@builder(f"setp.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}.{{t:f16x2|bf16x2}}")
def setp_packed(d: PtxDecoder) -> Op:
    """p|q are the results of the low and the high half."""
    parts = d.parts
    kind = _HALVES[parts[-1].removesuffix("x2")]
    name = parts[1]
    first, second = pair(d.operands[0])
    p, q = d.destination(first), d.destination(second)
    a, b = (d.source(operand, parts[-1]) for operand in d.operands[1:3])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        low, high = packed_bool(kind.compare, R[a], R[b], name)
        copyto(R[p], low, where=m)
        copyto(R[q], high, where=m)

    return op


@alu(f"set.{{o:{_INT_OPS}}}.{{d:u32|s32|f32}}.{{t:{_INT_TYPES}}}", "d t t")
@alu(f"set.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}.{{d:u32|s32|f32}}.{{t:f32|f64|f16|bf16}}", "d t t")
def set_(a: Array, b: Array, o: str, d: str, t: str, ftz: str = "") -> Array:
    """All ones (or 1.0) where the comparison holds."""
    yes = 0x3F80_0000 if d == "f32" else 0xFFFF_FFFF
    return np.where(_comparison(o, t, bool(ftz))(a, b), np.uint32(yes), np.uint32(0))


_SET_HALF = f"set.{{o:{_FLOAT_OPS}}}{{ftz:|.ftz}}."


@alu(_SET_HALF + "{d:f16x2|bf16x2|u32|s32}.{t:f16x2|bf16x2}", "d t t")
@alu(_SET_HALF + "{d:f16|bf16|u16|s16}.{t:f16|bf16}", "d t t")
def set_half(a: Array, b: Array, o: str, d: str, t: str, ftz: str) -> Array:
    """1.0, or all ones, in each half for which the comparison holds."""
    compare = _HALVES[t.removesuffix("x2")].compare
    yes = {"f16": 0x3C00, "bf16": 0x3F80}.get(d.removesuffix("x2"), 0xFFFF)
    if not t.endswith("x2"):
        return compare(a, b, o, ftz=bool(ftz)) * np.uint16(yes)
    low, high = packed_bool(compare, a, b, o, ftz=bool(ftz))
    return low * np.uint32(yes) | high * np.uint32(yes << 16)


@alu("selp.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "t t t pred")
def selp(a: Array, b: Array, p: Array) -> Array:
    return np.where(p, a, b)


@alu("slct.{t:b32|b64|u32|u64|s32|s64|f32|f64|b16|u16|s16}.s32", "t t t s32")
def slct(a: Array, b: Array, c: Array) -> Array:
    return np.where(typed(c, "s32") >= 0, a, b)


@alu("slct{ftz:|.ftz}.{t:b32|b64|u32|u64|s32|s64|f32|f64}.f32", "t t t f32")
def slct_float(a: Array, b: Array, c: Array, ftz: str) -> Array:
    """-0 counts as >= 0, and with `.ftz` any subnormal; a NaN does not."""
    picks = f32.flush(c) if ftz else c
    return np.where(picks.view(np.float32) >= 0, a, b)
