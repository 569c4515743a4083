"""PTX's approximate functions: float64's value rounded once, with PTX's special values.

The hardware's own last bits come from tables that NVIDIA does not publish, so a result here lies
within the bound that PTX states (section 9.7.3 of the PTX ISA) but not bit for bit on the card's.
Special values are exact. `ftz` flushes subnormal inputs and results.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.arithmetic.floats import f32
from warpsim.arithmetic.formats import F32, Bits, Double, decode
from warpsim.arithmetic.ieee import quiet


@quiet
def _unary(function: Callable[[Double], Double], a: Bits, ftz: bool) -> Bits:
    argument = decode(f32.flush(a) if ftz else a, F32)
    return _rounded(np.asarray(function(argument)), ftz)


def _rounded(value: Double, ftz: bool) -> Bits:
    bits = value.astype(np.float32).view(np.uint32)
    bits = np.where(np.isnan(value), np.uint32(F32.nan), bits)
    return f32.flush(bits) if ftz else bits


def ex2(a: Bits, *, ftz: bool = False) -> Bits:
    """2**a. -inf to +0, +inf to +inf, both zeros to 1."""
    return _unary(np.exp2, a, ftz)


def lg2(a: Bits, *, ftz: bool = False) -> Bits:
    """log2(a). Both zeros to -inf, +inf to +inf, negative values to NaN."""
    return _unary(np.log2, a, ftz)


def rcp(a: Bits, *, ftz: bool = False) -> Bits:
    """1 / a. Zeros to infinities and infinities to zeros, with their sign."""
    return _unary(np.reciprocal, a, ftz)


def rsqrt(a: Bits, *, ftz: bool = False) -> Bits:
    """1 / sqrt(a). Zeros to infinities of their sign, +inf to +0, negative values to NaN."""
    return _unary(lambda x: np.reciprocal(np.sqrt(x)), a, ftz)


def sqrt(a: Bits, *, ftz: bool = False) -> Bits:
    """sqrt(a). Zeros keep their sign, +inf to +inf, negative values to NaN."""
    return _unary(np.sqrt, a, ftz)


def sin(a: Bits, *, ftz: bool = False) -> Bits:
    """sin(a) of radians. Zeros keep their sign, infinities to NaN."""
    return _unary(np.sin, a, ftz)


def cos(a: Bits, *, ftz: bool = False) -> Bits:
    """cos(a) of radians. Zeros to 1, infinities to NaN."""
    return _unary(np.cos, a, ftz)


def tanh(a: Bits) -> Bits:
    """tanh(a). Zeros keep their sign, infinities to -1 and 1; subnormals are kept."""
    return _unary(np.tanh, a, False)


@quiet
def div(a: Bits, b: Bits, *, full: bool = False, ftz: bool = False) -> Bits:
    """a / b; without `full` a divisor of 2**126 or more gives a zero (NaN for an infinite a)."""
    if ftz:
        a, b = f32.flush(a), f32.flush(b)
    x, y = decode(a, F32), decode(b, F32)
    quotient = np.asarray(x / y)
    if not full:
        huge = np.isfinite(y) & (np.abs(y) > 2.0**126)
        signed_zero = np.where(np.signbit(x) ^ np.signbit(y), -0.0, 0.0)
        of_huge = np.where(np.isfinite(x), signed_zero, np.nan)
        quotient = np.where(huge, of_huge, quotient)
    return _rounded(quotient, ftz)
