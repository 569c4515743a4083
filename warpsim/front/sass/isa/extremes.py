"""Integer minima and maxima"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from warpsim.arithmetic.packed import halves, join
from warpsim.front.sass.decoder import SassDecoder, applied
from warpsim.front.sass.isa.integer import signed
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import Operand
from warpsim.machine.core.arrays import Array
from warpsim.machine.wave.machine import Op


@covers("{:IMNMX|VIMNMX}{:|.U32}", "VIMNMX.RELU", "UVIMNMX{:|.U32}")
def extreme(d: SassDecoder) -> Op:
    """The smaller where the predicate holds, else the larger; `.RELU`: 0 at least. Its predicates,
    of which nothing is known, may not be used."""
    target, a, b, p = d.take(_chosen(d), 4)
    unsigned, relu = "U32" in d.modifiers, "RELU" in d.modifiers

    def function(x: Array, y: Array, smaller: Array) -> Array:
        x, y = (x, y) if unsigned else (signed(x), signed(y))
        result = np.where(smaller, np.minimum(x, y), np.maximum(x, y))
        return (np.maximum(result, 0) if relu else result).view(np.uint32)

    return applied(d.to(target), function, (d.integer(a), d.integer(b), d.predicate(p)))


def _chosen(d: SassDecoder) -> Sequence[Operand]:
    """The operands of a choice, without the predicates that Blackwell spells after the result."""
    target, predicates, rest = d.split()
    if any(d.truth(predicate) is not True for predicate in predicates):
        raise d.refuse("gives a predicate, which is not covered")
    return [target, *rest]


@covers("{:VIMNMX|VIMNMX3}.{:U16x2|S16x2}{:|.RELU}")
def extreme_pairs(d: SassDecoder) -> Op:
    """The same of the halves of words."""
    target, *sources, p = d.take(_chosen(d), 5 if d.instruction.base == "VIMNMX3" else 4)
    kind = np.dtype(np.uint16 if "U16x2" in d.modifiers else np.int16)
    relu = "RELU" in d.modifiers

    def function(*values: Array) -> Array:
        *words, smaller = values
        values_read = []
        for half in zip(*(halves(word) for word in words), strict=True):
            parts = [part.view(kind) for part in half]
            least, most = functools.reduce(np.minimum, parts), functools.reduce(np.maximum, parts)
            result: Array = np.where(smaller, least, most)
            values_read.append((np.maximum(result, 0) if relu else result).view(np.uint16))
        return join(*values_read)

    return applied(d.to(target), function, [*map(d.bits, sources), d.predicate(p)])


@covers("VIADDMNMX{:|.U32}{:|.RELU}", "VIMNMX3{:|.U32}{:|.RELU}")
def extreme_of_more(d: SassDecoder) -> Op:
    """The smaller or larger of a + b and c, or of a, b and c."""
    target, *sources, p = d.take(d.operands, 5)
    unsigned, relu = "U32" in d.modifiers, "RELU" in d.modifiers
    adds = d.instruction.base == "VIADDMNMX"

    def function(a: Array, b: Array, c: Array, smaller: Array) -> Array:
        every = [a + b, c] if adds else [a, b, c]
        values = every if unsigned else [signed(value) for value in every]
        least, most = functools.reduce(np.minimum, values), functools.reduce(np.maximum, values)
        result: Array = np.where(smaller, least, most)
        return (np.maximum(result, 0) if relu else result).view(np.uint32)

    return applied(d.to(target), function, [*map(d.integer, sources), d.predicate(p)])
