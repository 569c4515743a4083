"""Two halves at once, f16 or bf16."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpsim.arithmetic import convert
from warpsim.arithmetic.floats import bf16, f16
from warpsim.arithmetic.packed import packed, packed_bool
from warpsim.front.sass.decoder import SassDecoder, applied, copyto
from warpsim.front.sass.isa.floating import COMBINE, FLOAT_COMPARE, comparison
from warpsim.front.sass.isa.integer import COMBINATIONS
from warpsim.front.sass.operands import Reader, part_of
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import LiteralOperand, Operand
from warpsim.machine.core import registers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.wave.machine import Op, WarpSet

_BF16 = "BF16_V2"


def format_of(d: SassDecoder) -> Any:
    return bf16 if _BF16 in d.modifiers else f16


def _sources(d: SassDecoder, operands: Sequence[Operand], count: int) -> list[Reader]:
    """Sources of pairs; a literal is spelled as two numbers, of which the word has both."""
    merged: list[Operand] = []
    literal = False
    for operand in operands:
        second = literal and isinstance(operand, LiteralOperand)
        literal = isinstance(operand, LiteralOperand) and not second
        if not second:
            merged.append(operand)
    return [d.pair_of_halves(operand) for operand in d.take(merged, count)]


def _computed(d: SassDecoder, name: str, count: int) -> Op:
    target, *operands = d.operands
    keywords: dict[str, Any] = {"ftz": "FTZ" in d.modifiers, "sat": "SAT" in d.modifiers}
    if name == "fma":
        keywords["relu"] = "RELU" in d.modifiers
    function: Callable[..., Array] = getattr(format_of(d), name)
    return applied(
        d.to(target), lambda *x: packed(function, *x, **keywords), _sources(d, operands, count)
    )


@covers("HADD2{:|.BF16_V2}{:|.FTZ}{:|.SAT}")
def hadd2(d: SassDecoder) -> Op:
    return _computed(d, "add", 2)


@covers("HMUL2{:|.BF16_V2}{:|.FTZ}{:|.SAT}")
def hmul2(d: SassDecoder) -> Op:
    return _computed(d, "mul", 2)


@covers("HFMA2{:|.MMA}{:|.BF16_V2}{:|.FTZ}{:|.RELU|.SAT}")
def hfma2(d: SassDecoder) -> Op:
    """a * b + c. Compilers also load constants so: zero times zero and a literal, bit for bit."""
    _, *operands = d.operands
    if len(operands) == 4 and all(isinstance(operand, LiteralOperand) for operand in operands[2:]):
        zeros = all(getattr(operand, "index", 0) == -1 for operand in operands[:2])
        if zeros and not {"FTZ", "RELU", "SAT"} & d.modifiers:
            return _constant(d)
    return _computed(d, "fma", 3)


def _constant(d: SassDecoder) -> Op:
    value = d.bits(d.operands[-1])
    return applied(d.to(d.operands[0]), lambda x: x, (value,))


@covers("HADD2.F32")
def widen(d: SassDecoder) -> Op:
    """A half as f32: what is added to it is minus zero."""
    target, zero, a = d.take(d.operands, 3)
    if getattr(zero, "index", 0) != -1 or not getattr(zero, "negated", False):
        raise d.refuse("adds something to a half as f32, which is not covered")
    to, half = d.to(target), d.half(a)
    op = applied(to, lambda x: convert.floating(x, "f16", "f32"), (half,))
    if getattr(a, "negated", False) or getattr(a, "absolute", False):
        return op
    (slot,), shift = d.words(a, 1), 16 if part_of(a).startswith("H1") else 0
    return Formed(op, CompiledForm("hadd2.f32", (to, slot, d.slot(registers.Literal(shift, 32)))))


@covers("HMNMX2{:|.BF16_V2}{:|.FTZ}{:|.NAN}{:|.XORSIGN}")
def hmnmx2(d: SassDecoder) -> Op:
    """The smaller where the predicate holds, else the larger; a NaN counts with `.NAN` only."""
    target, a, b, p = d.take(d.operands, 4)
    format_, sign = format_of(d), "XORSIGN" in d.modifiers
    if sign:
        raise d.refuse("multiplies signs, which is not covered")
    keywords = {"ftz": "FTZ" in d.modifiers, "nan": "NAN" in d.modifiers}

    def function(x: Array, y: Array, smaller: Array) -> Array:
        least, most = (
            packed(extremum, x, y, **keywords) for extremum in (format_.minimum, format_.maximum)
        )
        return np.where(smaller, least, most)

    sources = (d.pair_of_halves(a), d.pair_of_halves(b), d.predicate(p))
    return applied(d.to(target), function, sources)


@covers(f"HSETP2{{:|.BF16_V2}}.{FLOAT_COMPARE}{{:|.FTZ}}.{COMBINE}")
def hsetp2(d: SassDecoder) -> Op:
    """The comparisons of the lower and of the upper halves, each combined with a predicate."""
    low, high, *operands, other = d.operands
    slots = d.to_predicate(low), d.to_predicate(high)
    a, b = _sources(d, operands, 2)
    with_, format_ = d.predicate(other), format_of(d)
    test, combine = _test(d)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        masks = packed_bool(lambda x, y: test(format_, x, y), a(R), b(R))
        other_ = with_(R)
        results = [combine(mask, other_) for mask in masks]
        for slot, result in zip(slots, results, strict=True):
            copyto(R[slot], result, where=m)

    return op


def _test(d: SassDecoder) -> tuple[Callable[[Any, Array, Array], Array], Callable[..., Array]]:
    """The comparison of an instruction, and what combines it with a predicate."""
    names = [name for name in d.instruction.modifiers if name not in (_BF16, "BF")]
    test, ftz = comparison(names[0]), "FTZ" in names
    return lambda format_, x, y: test(format_, x, y, ftz), COMBINATIONS[names[-1]]


@covers(f"HSET2{{:|.BF16_V2}}{{:|.BF}}.{FLOAT_COMPARE}{{:|.FTZ}}.{COMBINE}")
def hset2(d: SassDecoder) -> Op:
    """The same as two halves: ones where it holds, 1.0 with `.BF`, else zeros."""
    target, *operands, other = d.operands
    a, b = _sources(d, operands, 2)
    format_, (test, combine) = format_of(d), _test(d)
    one = (0x3F80 if format_ is bf16 else 0x3C00) if "BF" in d.modifiers else 0xFFFF
    low_one, high_one = np.uint32(one), np.uint32(one << 16)

    def function(x: Array, y: Array, with_: Array) -> Array:
        low, high = packed_bool(lambda u, v: test(format_, u, v), x, y)
        low, high = combine(low, with_), combine(high, with_)
        return np.where(low, low_one, 0).astype(np.uint32) | np.where(high, high_one, 0)

    return applied(d.to(target), function, (a, b, d.predicate(other)))
