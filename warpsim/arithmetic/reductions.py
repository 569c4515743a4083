"""What atomics and reductions make of the old value and the operand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from warpsim.arithmetic.floats import bf16, f16, f32, f64
from warpsim.arithmetic.formats import Bits
from warpsim.arithmetic.integers import typed
from warpsim.arithmetic.packed import packed


def _min(a: Bits, b: Bits, t: str) -> Bits:
    return np.where(typed(b, t) < typed(a, t), b, a)


def _max(a: Bits, b: Bits, t: str) -> Bits:
    return np.where(typed(b, t) > typed(a, t), b, a)


class Combine(NamedTuple):
    """The new value, of old value and operand."""

    name: str
    """What compiled/atomics.cpp calls it, if it has it."""
    function: Callable[[Bits, Bits], Bits]

    def __call__(self, old: Any, operand: Any) -> Any:
        return self.function(old, operand)


def _add_64(a: Bits, b: Bits) -> Bits:
    result = f64.add(a, b)
    for operand in (b, a):
        result = np.where(operand << np.uint64(1) > np.uint64(0xFFE << 52), operand, result)
    return result


GLOBAL_ADD = Combine("add.ftz.f32", functools.partial(f32.add, ftz=True))
"""f32 in global memory: subnormals count as zeros (PTX ISA, atom: shared keeps them)."""
GLOBAL_ADD_64 = Combine("add.raw.f64", _add_64)
"""f64 in global memory hands a NaN on as it is, signalling ones too (an H200 does)."""


def _floating_add(t: str) -> Callable[[Bits, Bits], Bits]:
    formats: dict[str, Any] = {"f32": f32, "f64": f64, "f16": f16, "bf16": bf16}
    function = formats[t.removesuffix("x2")].add
    return (lambda a, b: packed(function, a, b)) if t.endswith("x2") else function


def reduction(name: str, t: str) -> Combine:
    """reduction("max", "s32")."""
    return Combine(f"{name}.{t}", _function(name, t))


def _function(name: str, t: str) -> Callable[[Bits, Bits], Bits]:
    if name == "add":
        is_float = t[0] == "f" or t.startswith("bf")
        return _floating_add(t) if is_float else lambda a, b: a + b
    table: dict[str, Callable[[Bits, Bits], Bits]] = {
        "min": lambda a, b: _min(a, b, t),
        "max": lambda a, b: _max(a, b, t),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "exch": lambda a, b: b,
        "inc": lambda a, b: np.where(a >= b, 0, a + 1).astype(a.dtype),
        "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1).astype(a.dtype),
    }
    return table[name]
