"""Single precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from warpsim.arithmetic.floats import f32
from warpsim.front.sass.decoder import SassDecoder, applied, copyto
from warpsim.front.sass.isa.integer import (
    COMBINATIONS,
    either,
    formed_choice,
    formed_comparison,
)
from warpsim.front.sass.operands import Reader, part_of
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, LiteralOperand, Operand, RegisterOperand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.wave.machine import Op, WarpSet

_HOW = "{:|.FTZ}{:|.RZ|.RM|.RP}{:|.SAT}"
FLOAT_COMPARE = "{:F|LT|EQ|LE|GT|NE|GE|NUM|NAN|LTU|EQU|LEU|GTU|NEU|GEU|T}"
COMBINE = "{:AND|OR|XOR}"
ONE = np.uint32(0x3F80_0000)


def how(d: SassDecoder) -> dict[str, Any]:
    """The modifiers of an operation that rounds, as keywords."""
    rounding = next((r for r in ("RZ", "RM", "RP") if r in d.modifiers), "RN")
    return {"rounding": rounding.lower(), "ftz": "FTZ" in d.modifiers, "sat": "SAT" in d.modifiers}


def _rounded(d: SassDecoder, function: Callable[..., Array], count: int) -> Op:
    target, *sources = d.take(d.operands, count + 1)
    keywords = how(d)
    op = applied(
        d.to(target), lambda *x: function(*x, **keywords), [d.real(source) for source in sources]
    )
    stem = {"FADD": "add", "FMUL": "mul", "FFMA": "fma.rn"}[d.instruction.base]
    if (rounding := keywords["rounding"]) != "rn":
        stem = stem.replace("rn", rounding) if stem == "fma.rn" else f"{stem}.{rounding}"
    name = f"{stem}{'.ftz' * keywords['ftz']}{'.sat' * keywords['sat']}.f32"
    return d.formed(op, name, target, sources, real=True)


@covers(f"FADD{_HOW}")
def fadd(d: SassDecoder) -> Op:
    return _rounded(d, f32.add, 2)


@covers(f"FMUL{_HOW}")
def fmul(d: SassDecoder) -> Op:
    return _rounded(d, f32.mul, 2)


@covers(f"FFMA{_HOW}")
def ffma(d: SassDecoder) -> Op:
    return _rounded(d, f32.fma, 3)


_PAIR = "{:|.FTZ}{:|.RZ|.RM|.RP}"


@covers(f"FADD2{_PAIR}")
def fadd2(d: SassDecoder) -> Op:
    return _two_rounded(d, f32.add, 2)


@covers(f"FMUL2{_PAIR}")
def fmul2(d: SassDecoder) -> Op:
    return _two_rounded(d, f32.mul, 2)


@covers(f"FFMA2{_PAIR}")
def ffma2(d: SassDecoder) -> Op:
    """The operation of two registers each, which may change places (`.LO_HI`); one register
    (`.F32`), or a literal, stands for both. With `.NP` the second one's sign is the opposite."""
    return _two_rounded(d, f32.fma, 3)


def _two_rounded(d: SassDecoder, function: Callable[..., Array], count: int) -> Op:
    target, *sources = d.take(d.operands, count + 1)
    keywords, pairs = how(d), [_two(d, source) for source in sources]
    lows, highs = [low for low, _ in pairs], [high for _, high in pairs]
    low_to, high_to = d.to_words(target, 2)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        low = function(*[read(R) for read in lows], **keywords)
        high = function(*[read(R) for read in highs], **keywords)
        copyto(R[low_to], low, where=m)
        copyto(R[high_to], high, where=m)

    return op


def _two(d: SassDecoder, operand: Operand) -> tuple[Reader, Reader]:
    """The lower and the upper number of a source."""
    if isinstance(operand, LiteralOperand):
        return d.real(operand), d.real(operand)
    part = part_of(operand).removesuffix(".NP")
    if not isinstance(operand, RegisterOperand) or part not in (
        "F32",
        "F32x2.HI_LO",
        "F32x2.LO_HI",
    ):
        raise d.refuse("has an operand that is not covered")
    first = low = high = msgspec.structs.replace(operand, part="")
    if part != "F32" and operand.index != ZERO:
        second = msgspec.structs.replace(first, index=first.index + 1)
        low, high = (second, first) if part.endswith("LO_HI") else (first, second)
    if part != part_of(operand):
        high = msgspec.structs.replace(high, negated=not high.negated)
    return d.real(low), d.real(high)


@covers("FMNMX3{:|.FTZ}{:|.NAN}")
def fmnmx3(d: SassDecoder) -> Op:
    """The same of three numbers."""
    target, a, b, c, p = d.take(d.operands, 5)
    keywords = {"ftz": "FTZ" in d.modifiers, "nan": "NAN" in d.modifiers, "xorsign_abs": False}

    def function(x: Array, y: Array, z: Array, smaller: Array) -> Array:
        least = f32.minimum(f32.minimum(x, y, **keywords), z, **keywords)
        most = f32.maximum(f32.maximum(x, y, **keywords), z, **keywords)
        return np.where(smaller, least, most)

    return applied(d.to(target), function, (d.real(a), d.real(b), d.real(c), d.predicate(p)))


@covers("FMNMX{:|.FTZ}{:|.NAN}{:|.XORSIGN}")
def fmnmx(d: SassDecoder) -> Op:
    """The smaller where the predicate holds, else the larger; a NaN counts with `.NAN` only."""
    target, a, b, p = d.take(d.operands, 4)
    sign = "XORSIGN" in d.modifiers
    # With .XORSIGN the bars are part of the operation: the signs make the result's.
    read: Callable[..., Reader] = d.magnitude if sign else d.real
    keywords = {"ftz": "FTZ" in d.modifiers, "nan": "NAN" in d.modifiers, "xorsign_abs": sign}

    def function(x: Array, y: Array, smaller: Array) -> Array:
        if smaller.all():
            return f32.minimum(x, y, **keywords)
        if not smaller.any():
            return f32.maximum(x, y, **keywords)
        return np.where(smaller, f32.minimum(x, y, **keywords), f32.maximum(x, y, **keywords))

    op = applied(d.to(target), function, (read(a), read(b), d.predicate(p)))
    smallest = d.truth(p)
    if smallest is None or keywords["nan"] or sign:
        return op
    name = f"{'min' if smallest else 'max'}{'.ftz' * keywords['ftz']}.f32"
    return d.formed(op, name, target, (a, b), real=True)


def comparison(name: str) -> Callable[[Any, Array, Array, bool], Array]:
    """A comparison of floating-point numbers by SASS's name of it."""
    if name in "FT":
        return lambda format_, x, y, ftz: np.full(x.shape, name == "T")
    return lambda format_, x, y, ftz: format_.compare(x, y, name.lower(), ftz=ftz)


@covers(f"FSETP.{FLOAT_COMPARE}{{:|.FTZ}}.{COMBINE}")
def fsetp(d: SassDecoder) -> Op:
    """The comparison and its opposite, each combined with a predicate."""
    yes, no, a, b, other = d.take(d.operands, 5)
    slots, sources = (d.to_predicate(yes), d.to_predicate(no)), (d.real(a), d.real(b))
    op = compared(d, f32, slots, sources, d.predicate(other))
    name = f"setp.{d.instruction.modifiers[0].lower()}{'.ftz' * ('FTZ' in d.modifiers)}.f32"
    return formed_comparison(d, op, name, slots, d.operands, real=True)


def compared(
    d: SassDecoder,
    format_: Any,
    slots: tuple[int, int],
    sources: tuple[Reader, Reader],
    with_: Reader,
) -> Op:
    """Two predicates of a comparison, by the instruction's modifiers."""
    names = d.instruction.modifiers
    test = comparison(names[0])
    combine = COMBINATIONS[names[-1]]
    ftz = "FTZ" in names
    (yes, no), (a, b) = slots, sources

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        holds, other = test(format_, a(R), b(R), ftz), with_(R)
        first, second = combine(holds, other), combine(~holds, other)
        copyto(R[yes], first, where=m)
        copyto(R[no], second, where=m)

    return op


@covers(f"FSET.BF.{FLOAT_COMPARE}{{:|.FTZ}}.{COMBINE}")
def fset(d: SassDecoder) -> Op:
    """1.0 where the comparison, combined with a predicate, holds, else 0.0."""
    target, a, b, other = d.take(d.operands, 4)
    names = d.instruction.modifiers
    test, combine, ftz = comparison(names[1]), COMBINATIONS[names[-1]], "FTZ" in names

    def function(x: Array, y: Array, with_: Array) -> Array:
        return np.where(combine(test(f32, x, y, ftz), with_), ONE, np.uint32(0))

    return applied(d.to(target), function, (d.real(a), d.real(b), d.predicate(other)))


@covers("FSEL")
def fsel(d: SassDecoder) -> Op:
    """The first source where the predicate holds, else the second, as they are but for signs."""
    target, a, b, p = d.take(d.operands, 4)
    op = applied(d.to(target), either, (d.real(a), d.real(b), d.predicate(p)))
    return formed_choice(d, op, real=True)


@covers("FCHK")
def fchk(d: SassDecoder) -> Op:
    """Whether a quotient needs the slow way: true wherever the exponents come near a limit. The
    hardware's own rule is not published; either way gives the same quotient."""
    target, a, b = d.take(d.operands, 3)
    x, y, slot = d.real(a), d.real(b), d.to_predicate(target)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        over, under = (((read(R) >> np.uint32(23)) & 0xFF).astype(np.int64) for read in (x, y))
        usual = (over > 25) & (over < 254) & (under > 1) & (under < 252)
        usual &= (over - under > -125) & (over - under < 126)
        copyto(R[slot], ~usual, where=m)

    return op
