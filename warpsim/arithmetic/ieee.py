"""PTX's floating-point operations on one format, each rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic.formats import (
    Bits,
    Double,
    Format,
    Mask,
    decode,
    encode,
    flush_tiny,
    product_error,
    sum_to_odd,
    to_odd,
)

quiet = np.errstate(all="ignore")


class Float:
    """The operations of one format; operands and results are its patterns."""

    def __init__(self, fmt: Format) -> None:
        self.format = fmt
        self._sign = fmt.dtype(fmt.sign)
        self._magnitude = fmt.dtype(fmt.sign - 1)
        self._nan = fmt.dtype(fmt.nan)
        infinity = fmt.infinity
        assert infinity is not None
        self._infinity = fmt.dtype(infinity)
        self._one = fmt.dtype(-fmt.min_exponent + 1 << (fmt.precision - 1))
        self._smallest_normal = fmt.dtype(1 << (fmt.precision - 1))
        self._least = 2.0**fmt.min_exponent

    # Bits

    def flush(self, a: Bits) -> Bits:
        """Subnormals to zeros of their sign."""
        tiny: Mask = (a & self._magnitude) < self._smallest_normal
        return np.where(tiny, a & self._sign, a)

    def isnan(self, a: Bits) -> Mask:
        return (a & self._magnitude) > self._infinity

    def neg(self, a: Bits, *, ftz: bool = False) -> Bits:
        """-a; the hardware adds it to a zero, so that a NaN becomes the canonical one."""
        return self._nans((self.flush(a) if ftz else a) ^ self._sign, a)

    def absolute(self, a: Bits, *, ftz: bool = False) -> Bits:
        """|a|, NaN as in neg."""
        return self._nans((self.flush(a) if ftz else a) & self._magnitude, a)

    def _nans(self, result: Bits, *operands: Bits) -> Bits:
        """`result` with the hardware's NaN instead of any (f64: of the operands, in order)."""
        return np.where(self.isnan(result), self._nan, result)

    def copysign(self, sign_of: Bits, magnitude_of: Bits) -> Bits:
        magnitude: Bits = magnitude_of & self._magnitude
        sign: Bits = sign_of & self._sign
        return magnitude | sign

    def testp(self, a: Bits, property_: str) -> Mask:
        magnitude = a & self._magnitude
        nan = magnitude > self._infinity
        infinite = magnitude == self._infinity
        subnormal = (magnitude < self._smallest_normal) & (magnitude > 0)
        # A zero counts as normal.
        properties: dict[str, Mask] = {
            "finite": ~nan & ~infinite,
            "infinite": infinite,
            "number": ~nan,
            "notanumber": nan,
            "normal": ~nan & ~infinite & ~subnormal,
            "subnormal": subnormal,
        }
        return properties[property_]

    # One rounding each

    @quiet
    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        x, y = self._value(a, ftz), self._value(b, ftz)
        return self._result(signed_zero(sum_to_odd(x, y), x, y, rounding), rounding, ftz, sat)

    def sub(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        return self.add(a, b ^ self._sign, rounding=rounding, ftz=ftz, sat=sat)

    @quiet
    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        # Two significands of 24 bits make 48: exact in float64.
        return self._result(self._value(a, ftz) * self._value(b, ftz), rounding, ftz, sat)

    @quiet
    def fma(
        self,
        a: Bits,
        b: Bits,
        c: Bits,
        *,
        rounding: str = "rn",
        ftz: bool = False,
        sat: bool = False,
        relu: bool = False,
    ) -> Bits:
        product = self._value(a, ftz) * self._value(b, ftz)
        addend = self._value(c, ftz)
        total = signed_zero(sum_to_odd(product, addend), product, addend, rounding)
        result = self._result(total, rounding, ftz, sat)
        return self.relu(result) if relu else result

    def relu(self, a: Bits) -> Bits:
        """Negative values to +0; NaN stays."""
        negative = (a & self._sign) != 0
        return np.where(negative & ~self.isnan(a), self.format.dtype(0), a)

    @quiet
    def div(self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        x, y = self._value(a, ftz), self._value(b, ftz)
        quotient = np.asarray(x / y)
        product = quotient * y
        rest = (x - product) - product_error(quotient, y, product)
        rest = np.where(np.signbit(y), -rest, rest)
        return self._result(to_odd(quotient, _finite_or_zero(rest)), rounding, ftz, False)

    def rcp(self, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        return self.div(np.full_like(a, self._one), a, rounding=rounding, ftz=ftz)

    @quiet
    def sqrt(self, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        x = self._value(a, ftz)
        root = np.asarray(np.sqrt(x))
        square = root * root
        rest = (x - square) - product_error(root, root, square)
        return self._result(to_odd(root, _finite_or_zero(rest)), rounding, ftz, False)

    def _value(self, a: Bits, ftz: bool) -> Double:
        return decode(self.flush(a) if ftz else a, self.format)

    def _result(self, value: Double, rounding: str, ftz: bool, sat: bool) -> Bits:
        if sat:
            value = np.where(value > 0, np.minimum(value, 1.0), 0.0)
        if ftz:
            value = flush_tiny(value, self.format, rounding)
        return encode(value, self.format, rounding)

    # Order

    def minimum(
        self, a: Bits, b: Bits, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
    ) -> Bits:
        return self._extreme(a, b, greatest=False, ftz=ftz, nan=nan, xorsign_abs=xorsign_abs)

    def maximum(
        self, a: Bits, b: Bits, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
    ) -> Bits:
        return self._extreme(a, b, greatest=True, ftz=ftz, nan=nan, xorsign_abs=xorsign_abs)

    def _extreme(
        self, a: Bits, b: Bits, *, greatest: bool, ftz: bool, nan: bool, xorsign_abs: bool
    ) -> Bits:
        if ftz:
            a, b = self.flush(a), self.flush(b)
        sign = (a ^ b) & self._sign
        if xorsign_abs:
            a, b = a & self._magnitude, b & self._magnitude
        a_first = self._order(a) > self._order(b) if greatest else self._order(a) < self._order(b)
        a_nan, b_nan = self.isnan(a), self.isnan(b)
        result = np.where((a_first & ~a_nan) | b_nan, a, b)
        if xorsign_abs:
            result = result | sign
        neither = (a_nan | b_nan) if nan else (a_nan & b_nan)
        return self._nans(np.where(neither, self._nan, result), b, a)

    def _order(self, a: Bits) -> Bits:
        """Unsigned keys in the order of the values, -0 before +0."""
        return np.where((a & self._sign) != 0, ~a, a | self._sign)

    def compare(self, a: Bits, b: Bits, op: str, *, ftz: bool = False) -> Mask:
        """setp's comparison: eq ne lt le gt ge false on NaN, their -u forms true, num and nan."""
        unordered = self.isnan(a) | self.isnan(b)
        if op in ("num", "nan"):
            return unordered if op == "nan" else ~unordered
        x, y = self._native(a, ftz), self._native(b, ftz)
        ordered: Mask = _COMPARISONS[op.removesuffix("u")](x, y)
        return ordered | unordered if op.endswith("u") else ordered & ~unordered

    def _native(self, a: Bits, ftz: bool) -> npt.NDArray[np.floating[Any]]:
        return self._value(a, ftz)


_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def signed_zero(total: Double, a: Double, b: Double, rounding: str) -> Double:
    """An exact zero sum of opposite signs is -0 when rounding down, else +0 (IEEE 754, 6.3)."""
    if rounding != "rm":
        return total
    both_positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
    return np.where((total == 0) & ~both_positive, -0.0, total)


def _finite_or_zero(error: Double) -> Double:
    return np.where(np.isfinite(error), error, 0.0)
