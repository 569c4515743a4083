"""float64 operations that float64 itself can't do in one rounding, on Python integers.

Slow (microseconds per element) and simple; fma.f64 and directed roundings are rare in kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from warpsim.arithmetic.formats import F64, Bits, Double, Format


def round_fraction(value: Fraction, fmt: Format, rounding: str) -> int:
    """The pattern of a value rounded to a format with an infinity; zero becomes +0."""
    negative = value < 0
    magnitude = abs(value)
    if magnitude == 0:
        return 0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, fmt.min_exponent)
    scaled = magnitude / Fraction(2) ** (exponent - fmt.precision + 1)
    whole = math.floor(scaled)
    rest = scaled - whole
    away = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": rest > 0 and negative,
        "rp": rest > 0 and not negative,
    }[rounding]
    pattern = whole + away + ((exponent - fmt.min_exponent) << (fmt.precision - 1))
    if pattern > fmt.max_finite:
        assert fmt.infinity is not None
        to_infinity = rounding == "rn" or (rounding == "rm" if negative else rounding == "rp")
        pattern = fmt.infinity if to_infinity else fmt.max_finite
    return pattern | (fmt.sign if negative else 0)


def elementwise(
    compute: Callable[..., Fraction], nearest: Double, rounding: str, *operands: Double
) -> Bits:
    """Rounds compute(*operands) element by element where it is finite and not zero.

    `nearest`: the result in float64's own arithmetic, whose zeros, infinities and NaNs are kept.
    """
    result = nearest.copy()
    flat = result.reshape(-1)
    columns = [np.broadcast_to(operand, nearest.shape).reshape(-1) for operand in operands]
    for i in range(flat.size):
        values = [float(column[i]) for column in columns]
        if all(math.isfinite(value) for value in values):
            exact = compute(*map(Fraction, values))
            if exact != 0:
                pattern = round_fraction(exact, F64, rounding)
                flat[i] = np.uint64(pattern).view(np.float64)
    return result.view(np.uint64)


def square_root(value: Fraction, fmt: Format, rounding: str) -> int:
    """The pattern of the square root of a positive float64 value rounded to the format."""
    # 128 bits of the root decide every rounding but an exact one, which isqrt finds exact.
    shift = 2 * (128 + 1074)
    scaled = value * 2**shift
    root = math.isqrt(scaled.numerator)
    exact = root * root == scaled.numerator
    odd = Fraction(root if exact else root | 1, 2 ** (shift // 2))
    return round_fraction(odd, fmt, rounding)
