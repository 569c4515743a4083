"""The floating-point formats, and the one rounding from an exact value to each of them.

A result is rounded once: operations form it in float64 *rounded to odd* (truncated, the last bit
set when anything was lost), and `encode` rounds that to the format. Rounding to odd with at least
two bits more than the target needs leaves the second rounding exact in every mode (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
2008); float64 has 53 bits and the widest target here 24.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

Bits: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
Double: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

ROUNDINGS = ("rn", "rna", "rz", "rm", "rp")


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A binary floating-point format. Patterns are without the sign bit."""

    name: str
    bits: int
    """Width, sign included."""
    precision: int
    """Bits of a normal significand, the hidden one included."""
    min_exponent: int
    """Exponent of the smallest normal number."""
    max_finite: int
    nan: int
    """What the hardware writes for NaN."""
    infinity: int | None
    """None: the format has no infinity, and its one NaN pattern is `nan`."""

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        return _DTYPES[self.bits]


_DTYPES: dict[int, type[np.unsignedinteger[Any]]] = {
    8: np.uint8,
    16: np.uint16,
    19: np.uint32,
    32: np.uint32,
    64: np.uint64,
}


def _ieee(name: str, bits: int, precision: int, nan: int) -> Format:
    exponent_bits = bits - precision
    infinity = ((1 << exponent_bits) - 1) << (precision - 1)
    return Format(
        name=name,
        bits=bits,
        precision=precision,
        min_exponent=2 - (1 << (exponent_bits - 1)),
        max_finite=infinity - 1,
        nan=nan,
        infinity=infinity,
    )


# The NaN patterns are those that an H200 wrote (warpsim/docs/conformance.md). f64 writes this one
# for invalid operations only; NaN operands keep their payload there (floats.py).
F64 = _ieee("f64", 64, 53, 0xFFF8000000000000)
F32 = _ieee("f32", 32, 24, 0x7FFFFFFF)
TF32 = _ieee("tf32", 19, 11, 0x3FFFF)
F16 = _ieee("f16", 16, 11, 0x7FFF)
BF16 = _ieee("bf16", 16, 8, 0x7FFF)
E5M2 = _ieee("e5m2", 8, 3, 0x7F)
E4M3 = Format(
    name="e4m3",
    bits=8,
    precision=4,
    min_exponent=-6,
    max_finite=0x7E,
    nan=0x7F,
    infinity=None,
)


def magnitude_to_double(pattern: Bits, fmt: Format) -> Double:
    """The values of sign-less finite patterns, from the definition of the format."""
    p = fmt.precision
    field = (pattern >> np.uint64(p - 1)).astype(np.int64)
    fraction = (pattern & np.uint64((1 << (p - 1)) - 1)).astype(np.int64)
    significand = np.where(field > 0, fraction + (1 << (p - 1)), fraction)
    exponent = np.maximum(field, 1) - 1 + fmt.min_exponent - (p - 1)
    return np.ldexp(significand.astype(np.float64), exponent)


def _table(fmt: Format) -> Double:
    codes = np.arange(1 << fmt.bits, dtype=np.uint64)
    pattern = codes & np.uint64(fmt.sign - 1)
    values = magnitude_to_double(pattern, fmt)
    if fmt.infinity is None:
        values[pattern == fmt.nan] = np.nan
    else:
        values[pattern == fmt.infinity] = np.inf
        values[pattern > fmt.infinity] = np.nan
    return np.where(codes & np.uint64(fmt.sign), -values, values)


_TABLES = {"e4m3": _table(E4M3), "e5m2": _table(E5M2)}


@np.errstate(invalid="ignore")  # casting a signalling NaN
def decode(bits: Bits, fmt: Format) -> Double:
    """The values of patterns, exactly; any NaN becomes a NaN."""
    if fmt.bits == 8:
        return _TABLES[fmt.name][bits]
    if fmt.name == "f16":
        return bits.view(np.float16).astype(np.float64)
    if fmt.name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if fmt.name == "f32":
        return bits.view(np.float32).astype(np.float64)
    return bits.view(np.float64)


def encode(value: Double, fmt: Format, rounding: str = "rn", *, satfinite: bool = False) -> Bits:
    """Rounds values to the format once; `satfinite` turns overflow and infinity into max_finite.

    A value that float64 doesn't hold exactly has to come rounded to odd (`to_odd`).
    """
    if fmt.bits == 64:
        return np.where(np.isnan(value), np.uint64(fmt.nan), value.view(np.uint64))
    magnitude = np.abs(value)
    negative = np.signbit(value)
    finite = np.isfinite(value)
    safe = np.where(finite, magnitude, 0.0)
    exponent = np.maximum(np.frexp(safe)[1] - 1, fmt.min_exponent)
    exponent = np.where(safe == 0, fmt.min_exponent, exponent)
    scaled = np.ldexp(safe, fmt.precision - 1 - exponent)
    whole = np.floor(scaled)
    pattern = whole.astype(np.int64) + _increment(scaled - whole, whole, negative, rounding)
    pattern += (exponent - fmt.min_exponent).astype(np.int64) << (fmt.precision - 1)
    overflow = pattern > fmt.max_finite
    pattern = np.where(overflow, _overflowed(fmt, negative, rounding, satfinite), pattern)
    beyond = fmt.max_finite if satfinite else (fmt.infinity or fmt.nan)
    pattern = np.where(np.isinf(value), beyond, pattern)
    pattern = np.where(negative, pattern | fmt.sign, pattern)
    pattern = np.where(np.isnan(value), fmt.nan, pattern)
    return pattern.astype(fmt.dtype)


def _increment(rest: Double, whole: Double, negative: Mask, rounding: str) -> Any:
    if rounding == "rn":
        return (rest > 0.5) | ((rest == 0.5) & (np.fmod(whole, 2.0) == 1.0))
    if rounding == "rna":
        return rest >= 0.5
    if rounding == "rz":
        return 0
    if rounding == "rm":
        return (rest > 0) & negative
    if rounding == "rp":
        return (rest > 0) & ~negative
    raise ValueError(f"{rounding} is no rounding: {', '.join(ROUNDINGS)}")


def _overflowed(fmt: Format, negative: Mask, rounding: str, satfinite: bool) -> Any:
    if satfinite or rounding == "rz":
        return fmt.max_finite
    infinity = fmt.nan if fmt.infinity is None else fmt.infinity
    if rounding == "rm":
        return np.where(negative, infinity, fmt.max_finite)
    if rounding == "rp":
        return np.where(negative, fmt.max_finite, infinity)
    return infinity


def flush_tiny(value: Double, fmt: Format, rounding: str) -> Double:
    """Zeros, with their sign, instead of values whose rounded result would be subnormal.

    That is IEEE 754's tininess after rounding: what the format's precision, with exponents without
    limit, would round up to the smallest normal number is no subnormal and stays.
    """
    normal = 2.0**fmt.min_exponent
    beneath = normal * (1 - 2.0**-fmt.precision)
    magnitude = np.abs(value)
    if rounding == "rn":
        tiny = magnitude < normal * (1 - 2.0 ** -(fmt.precision + 1))
    elif rounding == "rz":
        tiny = magnitude < normal
    else:
        away = np.signbit(value) == (rounding == "rm")
        tiny = np.where(away, magnitude <= beneath, magnitude < normal)
    return np.where(tiny, np.copysign(0.0, value), value)


def to_odd(rounded: Double, error: Double) -> Double:
    """`rounded + error` rounded to odd, where `rounded` is that sum rounded to nearest."""
    bits = rounded.view(np.int64)
    inexact = (error != 0) & np.isfinite(rounded) & ((bits & 1) == 0)
    step = np.where(np.signbit(error) == np.signbit(rounded), 1, -1)
    return np.where(inexact, bits + step, bits).view(np.float64)


def sum_to_odd(a: Double, b: Double) -> Double:
    """a + b rounded to odd (the error of the rounded sum is exact: Knuth's TwoSum)."""
    total = a + b
    b_part = total - a
    error = (a - (total - b_part)) + (b - b_part)
    return to_odd(total, error)


def product_error(a: Double, b: Double, product: Double) -> Double:
    """a * b - product exactly (Dekker), for magnitudes far from float64's limits."""
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Double) -> tuple[Double, Double]:
    scaled = a * 134217729.0  # 2**27 + 1: halves of 26 bits
    high = scaled - (scaled - a)
    return high, a - high
