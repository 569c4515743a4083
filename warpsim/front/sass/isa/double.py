"""Double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.arithmetic.floats import f64
from warpsim.front.sass.decoder import SassDecoder, copyto
from warpsim.front.sass.isa.floating import COMBINE, FLOAT_COMPARE, compared, how
from warpsim.front.sass.registry import covers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.wave.machine import Op, WarpSet

_ROUND = "{:|.RZ|.RM|.RP}"


def _rounded(d: SassDecoder, function: Callable[..., Array], count: int) -> Op:
    target, *operands = d.take(d.operands, count + 1)
    sources, write = [d.double(operand) for operand in operands], d.to_pair(target)
    rounding = how(d)["rounding"]
    return lambda R, m, warps: write(R, function(*[s(R) for s in sources], rounding=rounding), m)


@covers(f"DADD{_ROUND}")
def dadd(d: SassDecoder) -> Op:
    return _rounded(d, f64.add, 2)


@covers(f"DMUL{_ROUND}")
def dmul(d: SassDecoder) -> Op:
    return _rounded(d, f64.mul, 2)


@covers(f"DFMA{_ROUND}")
def dfma(d: SassDecoder) -> Op:
    return _rounded(d, f64.fma, 3)


@covers(f"DSETP.{FLOAT_COMPARE}.{COMBINE}")
def dsetp(d: SassDecoder) -> Op:
    """The comparison and its opposite, each combined with a predicate."""
    yes, no, a, b, other = d.take(d.operands, 5)
    slots, sources = (d.to_predicate(yes), d.to_predicate(no)), (d.double(a), d.double(b))
    return compared(d, f64, slots, sources, d.predicate(other))


@covers("DSETP.{:MIN|MAX}.AND")
def dsetp_extreme(d: SassDecoder) -> Op:
    """Whether the first of two numbers is the smaller, or the larger, or the only one; and whether
    both are NaN."""
    yes, no, a, b, other = d.take(d.operands, 5)
    first, second, x, y = d.to_predicate(yes), d.to_predicate(no), d.double(a), d.double(b)
    if d.truth(other) is not True:
        raise d.refuse("combines the choice with a predicate, which is not covered")
    test = "lt" if "MIN" in d.modifiers else "gt"

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        p, q = x(R), y(R)
        lost = f64.isnan(p)
        chosen = f64.compare(p, q, test) | f64.isnan(q) | _signed(p, q, test)
        copyto(R[first], chosen & ~lost, where=m)
        copyto(R[second], lost & f64.isnan(q), where=m)

    return op


def _signed(p: Array, q: Array, test: str) -> Array:
    """Of zeros the negative one is the smaller."""
    zeros = ((p | q) << np.uint64(1)) == 0
    return zeros & ((p > q) if test == "lt" else (p < q))
