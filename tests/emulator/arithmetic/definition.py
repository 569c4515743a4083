"""What a float operation is, by definition: an exact fraction, then a search among the patterns.

Shares nothing with the package but the formats' names: values come from the bit fields, rounding
from a bisection over all patterns.
"""

from __future__ import annotations

import math
from fractions import Fraction

from warpsim.arithmetic.formats import Format

Value = Fraction | float
"""A finite value, or a float that is an infinity or NaN."""


def value(pattern: int, fmt: Format) -> Value:
    magnitude = magnitude_value(pattern % fmt.sign, fmt)
    return -magnitude if pattern & fmt.sign else magnitude


def magnitude_value(pattern: int, fmt: Format) -> Value:
    if pattern > fmt.max_finite:
        return math.inf if pattern == fmt.infinity else math.nan
    field, fraction = divmod(pattern, 1 << (fmt.precision - 1))
    significand = Fraction(fraction, 1 << (fmt.precision - 1)) + (1 if field else 0)
    return significand * Fraction(2) ** (max(field, 1) - 1 + fmt.min_exponent)


def rounded(exact: Fraction, fmt: Format, rounding: str, *, negative_zero: bool = False) -> int:
    """The pattern of an exact value; overflow as IEEE 754 has it for the rounding."""
    negative = exact < 0 or (exact == 0 and negative_zero)
    magnitude = abs(exact)
    low, high = 0, fmt.max_finite + 1
    while high - low > 1:
        middle = (low + high) // 2
        if magnitude_value(middle, fmt) <= magnitude:
            low = middle
        else:
            high = middle
    below = magnitude_value(low, fmt)
    # The next pattern's value, also where that would be an infinity's.
    above = (
        magnitude_value(low + 1, fmt)
        if low < fmt.max_finite
        else below + (below - magnitude_value(low - 1, fmt))
    )
    if magnitude != below:
        away = {"rz": False, "rm": negative, "rp": not negative}.get(rounding)
        if away is None:
            middle_value = (below + above) / 2
            away = magnitude > middle_value or (magnitude == middle_value and low % 2 == 1)
        beyond = magnitude > above  # only past the largest finite value
        low += bool(away or (beyond and rounding == "rn"))
    if low > fmt.max_finite:
        low = fmt.infinity if fmt.infinity is not None else fmt.max_finite
    return low | (fmt.sign if negative else 0)


def is_special(*values: Value) -> bool:
    return any(not isinstance(v, Fraction) for v in values)


def exponent(pattern: int, fmt: Format) -> int:
    """Of the significand as it stands in the pattern: a subnormal's is the smallest."""
    field = (pattern % fmt.sign) >> (fmt.precision - 1)
    return max(field, 1) - 1 + fmt.min_exponent


def truncated(x: Fraction, unit: Fraction) -> Fraction:
    return math.trunc(x / unit) * unit


def to_f32(total: Fraction, bits: int) -> int:
    magnitude = abs(total)
    if magnitude >= Fraction(2) ** 128:
        return 0x7F800000 | (total < 0) << 31
    power = max(floor_log2(magnitude), -126) if magnitude else -126
    unit = Fraction(2) ** (power - 23)
    kept = math.trunc(magnitude / unit) >> (24 - bits) << (24 - bits)
    pattern = kept + ((power + 126) << 23)
    return pattern | (0x80000000 if total < 0 and pattern else 0)


def floor_log2(x: Fraction) -> int:
    power = x.numerator.bit_length() - x.denominator.bit_length()
    return power if x >= Fraction(2) ** power else power - 1


SHAPES = {"e2m1": (2, 1, 1), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3)}
"""Bits of the exponent and of the fraction of the narrow formats, and the exponent's bias."""


def narrow_value(code: int, kind: str) -> Fraction:
    exponent_bits, fraction_bits, bias = SHAPES[kind]
    exponent, fraction = code >> fraction_bits, code % (1 << fraction_bits)
    exponent %= 1 << exponent_bits
    if exponent:
        return (1 + Fraction(fraction, 1 << fraction_bits)) * Fraction(2) ** (exponent - bias)
    return Fraction(fraction, 1 << fraction_bits) * Fraction(2) ** (1 - bias)
