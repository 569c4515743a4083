"""Integer arithmetic."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.integers import SIGNED, bits, typed
from warpsim.front.ptx.registry import alu
from warpsim.machine.core.arrays import Array

_INT = "{t:u16|s16|u32|s32|u64|s64}"


def _wide(a: Array, t: str) -> Array:
    return typed(a, t).astype(f"{'i' if t[0] == 's' else 'u'}{2 * a.itemsize}")


@alu("add." + _INT, "t t t", ufunc=np.add)
def add(a: Array, b: Array) -> Array:
    return a + b


@alu("add.{t:u16x2|s16x2}", "t t t")
def add_pairs(a: Array, b: Array) -> Array:
    high = np.uint32(0xFFFF0000)
    return (a + b & ~high) | ((a & high) + (b & high))


@alu("sub." + _INT, "t t t", ufunc=np.subtract)
def sub(a: Array, b: Array) -> Array:
    return a - b


@alu("add.sat.s32", "s32 s32 s32")
def add_sat(a: Array, b: Array) -> Array:
    return _clip32(_wide(a, "s32") + _wide(b, "s32"))


@alu("sub.sat.s32", "s32 s32 s32")
def sub_sat(a: Array, b: Array) -> Array:
    return _clip32(_wide(a, "s32") - _wide(b, "s32"))


def _clip32(a: Array) -> Array:
    return bits(a.clip(-(2**31), 2**31 - 1).astype(np.int32))


@alu("mul.lo." + _INT, "t t t", ufunc=np.multiply)
def mul_lo(a: Array, b: Array) -> Array:
    return a * b


@alu("mul.hi.{t:u16|s16|u32|s32}", "t t t")
def mul_hi(a: Array, b: Array, t: str) -> Array:
    product = _wide(a, t) * _wide(b, t)
    return bits((product >> (8 * a.itemsize)).astype(typed(a, t).dtype))


@alu("mul.hi.{t:u64|s64}", "t t t")
def mul_hi_64(a: Array, b: Array, t: str) -> Array:
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> high, b & low, b >> high
    middle = a1 * b0 + (a0 * b0 >> high)
    result = a1 * b1 + (middle >> high) + (a0 * b1 + (middle & low) >> high)
    if t == "u64":
        return result
    # a * b as signed: each negative factor has brought 2^64 times the other one too much.
    return result - np.where(typed(a, t) < 0, b, 0) - np.where(typed(b, t) < 0, a, 0)


@alu("mad.hi.sat.s32", "s32 s32 s32 s32")
def mad_hi_sat(a: Array, b: Array, c: Array) -> Array:
    return add_sat(mul_hi(a, b, "s32"), c)


@alu("mul.wide.{t:u16|s16}", "b32 t t")
@alu("mul.wide.{t:u32|s32}", "b64 t t")
def mul_wide(a: Array, b: Array, t: str) -> Array:
    return bits(_wide(a, t) * _wide(b, t))


@alu("mad.lo." + _INT, "t t t t")
def mad_lo(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


@alu("mad.hi.{t:u16|s16|u32|s32|u64|s64}", "t t t t")
def mad_hi(a: Array, b: Array, c: Array, t: str) -> Array:
    return (mul_hi_64 if t.endswith("64") else mul_hi)(a, b, t) + c


@alu("mad.wide.{t:u16|s16}", "b32 t t b32")
@alu("mad.wide.{t:u32|s32}", "b64 t t b64")
def mad_wide(a: Array, b: Array, c: Array, t: str) -> Array:
    return bits(_wide(a, t) * _wide(b, t)) + c


@alu("mul24.{h:lo|hi}.{t:u32|s32}", "t t t")
def mul24(a: Array, b: Array, h: str, t: str) -> Array:
    """The low or the high 32 bits of a product of 48."""
    product = _wide(_low24(a, t), t) * _wide(_low24(b, t), t)
    return bits((product >> (16 if h == "hi" else 0)).astype(typed(a, t).dtype))


@alu("mad24.{h:lo|hi}.{t:u32|s32}", "t t t t")
def mad24(a: Array, b: Array, c: Array, h: str, t: str) -> Array:
    return mul24(a, b, h, t) + c


def _low24(a: Array, t: str) -> Array:
    shifted = typed(a << np.uint32(8), t) >> 8
    return bits(shifted)


def _magnitude(a: Array) -> Array:
    """|a| as unsigned, right for the most negative number too."""
    return np.where(a.view(SIGNED[a.itemsize * 8]) < 0, 0 - a, a)


@alu("div." + _INT, "t t t")
def div(a: Array, b: Array, t: str) -> Array:
    """Truncates; division by zero gives all ones, as ptxas's division sequence does."""
    if t[0] == "u":
        return _udiv(a, b)
    quotient = _udiv(_magnitude(a), _magnitude(b))
    negative = (typed(a, t) < 0) != (typed(b, t) < 0)
    return np.where(b == 0, ~np.zeros_like(a), np.where(negative, 0 - quotient, quotient))


@alu("rem." + _INT, "t t t")
def rem(a: Array, b: Array, t: str) -> Array:
    """Has the sign of the dividend; a zero divisor gives the dividend."""
    return a - div(a, b, t) * b


def _udiv(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), a // safe)


@alu("abs.{t:s16|s32|s64}", "t t")
def absolute(a: Array) -> Array:
    return _magnitude(a)


@alu("neg.{t:s16|s32|s64}", "t t")
def neg(a: Array) -> Array:
    return 0 - a


@alu("min." + _INT, "t t t")
def minimum(a: Array, b: Array, t: str) -> Array:
    return bits(np.minimum(typed(a, t), typed(b, t)))


@alu("max." + _INT, "t t t")
def maximum(a: Array, b: Array, t: str) -> Array:
    return bits(np.maximum(typed(a, t), typed(b, t)))


# CUDA's headers write .relu after the type, its manual before it.
@alu("{o:min|max}.relu.s32", "s32 s32 s32")
@alu("{o:min|max}.s32.relu", "s32 s32 s32")
def minmax_relu(a: Array, b: Array, o: str) -> Array:
    result = (minimum if o == "min" else maximum)(a, b, "s32")
    return maximum(result, np.zeros_like(result), "s32")


@alu("{o:min|max}{relu:|.relu}.{t:s16x2}", "t t t")
@alu("{o:min|max}.{t:s16x2}{relu:.relu}", "t t t")
@alu("{o:min|max}.{t:u16x2}", "t t t")
def minmax_pairs(a: Array, b: Array, o: str, t: str, relu: str = "") -> Array:
    function = minimum if o == "min" else maximum
    halves = [
        function((a >> s & 0xFFFF).astype(np.uint16), (b >> s & 0xFFFF).astype(np.uint16), t[:3])
        for s in (0, 16)
    ]
    if relu:
        halves = [maximum(half, np.zeros_like(half), "s16") for half in halves]
    return halves[0].astype(np.uint32) | halves[1].astype(np.uint32) << np.uint32(16)


@alu("sad.{t:u16|s16|u32|s32|u64|s64}", "t t t t")
def sad(a: Array, b: Array, c: Array, t: str) -> Array:
    return c + np.where(typed(a, t) < typed(b, t), b - a, a - b)


@alu("dp4a.{t:u32|s32}.{s:u32|s32}", "s32 t s s32")
def dp4a(a: Array, b: Array, c: Array, t: str, s: str) -> Array:
    total = c.astype(np.uint32)
    for shift in (0, 8, 16, 24):
        total = total + _byte(a, shift, t) * _byte(b, shift, s)
    return total


@alu("dp2a.{h:lo|hi}.{t:u32|s32}.{s:u32|s32}", "s32 t s s32")
def dp2a(a: Array, b: Array, c: Array, h: str, t: str, s: str) -> Array:
    first = 0 if h == "lo" else 16
    low = _field(a, 0, 16, t) * _byte(b, first, s)
    return c + low + _field(a, 16, 16, t) * _byte(b, first + 8, s)


def _field(a: Array, shift: int, width: int, t: str) -> Array:
    moved = a << np.uint32(32 - width - shift)
    return bits(typed(moved, t) >> (32 - width))


def _byte(a: Array, shift: int, t: str) -> Array:
    return _field(a, shift, 8, t)


@alu("vadd.{t:s32}.s32.s32", "s32 s32 s32")
def vadd(a: Array, b: Array) -> Array:
    return a + b


@alu("vsub.{t:s32}.s32.s32", "s32 s32 s32")
def vsub(a: Array, b: Array) -> Array:
    return a - b
