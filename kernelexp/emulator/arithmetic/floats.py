"""PTX's floating-point operations on the formats f16, bf16, f32 and f64."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from kernelexp.emulator.arithmetic import exact
from kernelexp.emulator.arithmetic.formats import (
    BF16,
    F16,
    F32,
    F64,
    Bits,
    Double,
    Format,
    Mask,
    decode,
    encode,
    product_error,
    sum_to_odd,
    to_odd,
)

_quiet = np.errstate(all="ignore")


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
        tiny = (a & self._magnitude) < self._smallest_normal
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
        """`result` with the hardware's NaN in place of any (f64: of the operands, in order)."""
        return np.where(self.isnan(result), self._nan, result)

    def copysign(self, sign_of: Bits, magnitude_of: Bits) -> Bits:
        return (magnitude_of & self._magnitude) | (sign_of & self._sign)

    def testp(self, a: Bits, property_: str) -> Mask:
        magnitude = a & self._magnitude
        nan = magnitude > self._infinity
        infinite = magnitude == self._infinity
        subnormal = (magnitude < self._smallest_normal) & (magnitude > 0)
        # A zero counts as normal.
        return {
            "finite": ~nan & ~infinite,
            "infinite": infinite,
            "number": ~nan,
            "notanumber": nan,
            "normal": ~nan & ~infinite & ~subnormal,
            "subnormal": subnormal,
        }[property_]

    # One rounding each

    @_quiet
    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        x, y = self._value(a, ftz), self._value(b, ftz)
        return self._result(_signed_zero(sum_to_odd(x, y), x, y, rounding), rounding, ftz, sat)

    def sub(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        return self.add(a, b ^ self._sign, rounding=rounding, ftz=ftz, sat=sat)

    @_quiet
    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        # Two significands of 24 bits make 48: exact in float64.
        return self._result(self._value(a, ftz) * self._value(b, ftz), rounding, ftz, sat)

    @_quiet
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
        total = _signed_zero(sum_to_odd(product, addend), product, addend, rounding)
        result = self._result(total, rounding, ftz, sat)
        return self.relu(result) if relu else result

    def relu(self, a: Bits) -> Bits:
        """Negative values to +0; NaN stays."""
        negative = (a & self._sign) != 0
        return np.where(negative & ~self.isnan(a), self.format.dtype(0), a)

    @_quiet
    def div(self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        x, y = self._value(a, ftz), self._value(b, ftz)
        quotient = np.asarray(x / y)
        product = quotient * y
        rest = (x - product) - product_error(quotient, y, product)
        rest = np.where(np.signbit(y), -rest, rest)
        return self._result(to_odd(quotient, _finite_or_zero(rest)), rounding, ftz, False)

    def rcp(self, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        return self.div(np.full_like(a, self._one), a, rounding=rounding, ftz=ftz)

    @_quiet
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
            # Flushed before rounding: what would round up to the smallest normal is zero, too.
            value = np.where(np.abs(value) < self._least, np.copysign(0.0, value), value)
        return encode(value, self.format, rounding)

    # Order

    def minimum(
        self,
        a: Bits,
        b: Bits,
        *,
        ftz: bool = False,
        nan: bool = False,
        xorsign_abs: bool = False,
    ) -> Bits:
        return self._extreme(a, b, False, ftz, nan, xorsign_abs)

    def maximum(
        self,
        a: Bits,
        b: Bits,
        *,
        ftz: bool = False,
        nan: bool = False,
        xorsign_abs: bool = False,
    ) -> Bits:
        return self._extreme(a, b, True, ftz, nan, xorsign_abs)

    def _extreme(
        self, a: Bits, b: Bits, greatest: bool, ftz: bool, nan: bool, xorsign_abs: bool
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
        ordered = _COMPARISONS[op.removesuffix("u")](x, y)
        return ordered | unordered if op.endswith("u") else ordered & ~unordered

    def _native(self, a: Bits, ftz: bool) -> Double:
        return self._value(a, ftz)


_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _signed_zero(total: Double, a: Double, b: Double, rounding: str) -> Double:
    """An exact zero sum of opposite signs is -0 when rounding down, else +0 (IEEE 754, 6.3)."""
    if rounding != "rm":
        return total
    both_positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
    return np.where((total == 0) & ~both_positive, -0.0, total)


def _finite_or_zero(error: Double) -> Double:
    return np.where(np.isfinite(error), error, 0.0)


class Single(Float):
    """f32, whose commonest forms are one or two NumPy operations."""

    @_quiet
    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        if rounding != "rn" or sat:
            return super().add(a, b, rounding=rounding, ftz=ftz, sat=sat)
        if ftz:
            a, b = self.flush(a), self.flush(b)
        return self._canonical(a.view(np.float32) + b.view(np.float32), ftz)

    @_quiet
    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        if rounding != "rn" or sat:
            return super().mul(a, b, rounding=rounding, ftz=ftz, sat=sat)
        if ftz:
            a, b = self.flush(a), self.flush(b)
        product = a.view(np.float32) * b.view(np.float32)
        if ftz and bool((np.abs(product) == np.float32(self._least)).any()):
            return super().mul(a, b, ftz=True)
        return self._canonical(product, ftz)

    @_quiet
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
        if rounding != "rn" or sat or relu:
            return super().fma(a, b, c, rounding=rounding, ftz=ftz, sat=sat, relu=relu)
        if ftz:
            a, b, c = self.flush(a), self.flush(b), self.flush(c)
        total = self._value(a, False) * self._value(b, False) + self._value(c, False)
        if self._may_round_twice(total):
            return super().fma(a, b, c, ftz=ftz)
        return self._canonical(total.astype(np.float32), ftz)

    @staticmethod
    def _may_round_twice(total: Double) -> bool:
        """Whether rounding the float64 sum again could differ from one rounding.

        It can where the float64 lies on the midpoint of two normal f32 (its low 29 bits are
        1 then 28 zeros), or where f32 keeps fewer bits (subnormal results).
        """
        low = total.view(np.uint64) & np.uint64(0x1FFFFFFF)
        magnitude = np.abs(total)
        tiny = (magnitude <= 2.0**-126) & (magnitude > 0)
        return bool(((low == 0x10000000) | tiny).any())

    def _canonical(self, result: np.ndarray, ftz: bool) -> Bits:  # type: ignore[type-arg]
        bits = np.asarray(result).view(np.uint32)
        if ftz:
            bits = self.flush(bits)
        nan = np.isnan(result)
        return np.where(nan, self._nan, bits) if nan.any() else bits

    def _native(self, a: Bits, ftz: bool) -> Double:
        return (self.flush(a) if ftz else a).view(np.float32)  # type: ignore[return-value]


class DoubleFloat(Float):
    """f64: nearest in NumPy's own arithmetic, the rest on integers; NaN operands keep payloads.

    Of several NaN operands the hardware takes b's, then c's, then a's, with the quiet bit set.
    Its division is a program, which takes the dividend's.
    """

    @_quiet
    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        x, y = a.view(np.float64), b.view(np.float64)
        nearest = _signed_zero(np.asarray(x + y), x, y, rounding)
        return self._nans(self._round(lambda p, q: p + q, nearest, rounding, x, y), b, a)

    def sub(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        # A NaN's sign is not changed: the negation is part of the addition.
        negated = np.where(self.isnan(b), b, b ^ self._sign)
        return self.add(a, negated, rounding=rounding)

    @_quiet
    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        x, y = a.view(np.float64), b.view(np.float64)
        nearest = np.asarray(x * y)
        return self._nans(self._round(lambda p, q: p * q, nearest, rounding, x, y), b, a)

    @_quiet
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
        x, y, z = a.view(np.float64), b.view(np.float64), c.view(np.float64)
        product = np.asarray(x * y)
        # Where the product overflows and z is an infinity, only z decides.
        overflowed = np.isinf(product) & np.isfinite(x) & np.isfinite(y)
        product = np.where(overflowed & np.isinf(z), 0.0, product)
        nearest = _signed_zero(product + z, product, z, rounding)
        result = exact.elementwise(lambda p, q, r: p * q + r, nearest, rounding, x, y, z)
        return self._nans(result, b, c, a)

    @_quiet
    def div(self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        x, y = a.view(np.float64), b.view(np.float64)
        nearest = np.asarray(x / y)
        # A zero divisor leaves nothing to round.
        divisor = np.where(y == 0, np.nan, y)
        result = self._round(lambda p, q: p / q, nearest, rounding, x, divisor)
        return self._nans(result, a, b)

    def rcp(self, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        return self.div(np.full_like(a, self._one), a, rounding=rounding)

    @_quiet
    def sqrt(self, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        x = a.view(np.float64)
        root = np.asarray(np.sqrt(x)).copy()
        if rounding != "rn":
            flat = root.reshape(-1)
            for i, value in enumerate(np.asarray(x).reshape(-1)):
                if value > 0 and np.isfinite(value):
                    pattern = exact.square_root(Fraction(float(value)), F64, rounding)
                    flat[i] = np.uint64(pattern).view(np.float64)
        return self._nans(root.view(np.uint64), a)

    @staticmethod
    def _round(
        compute: Callable[..., Fraction], nearest: Double, rounding: str, *operands: Double
    ) -> Bits:
        if rounding == "rn":
            return nearest.view(np.uint64)
        return exact.elementwise(compute, nearest, rounding, *operands)

    def _nans(self, result: Bits, *operands: Bits) -> Bits:
        """Where the result is NaN: the first operand that is one, made quiet, else the canonical."""
        chosen: Bits = np.full_like(result, self._nan)
        for operand in reversed(operands):
            quiet = operand | np.uint64(1 << (F64.precision - 2))
            chosen = np.where(self.isnan(operand), quiet, chosen)
        return np.where(self.isnan(result), chosen, result)


f16 = Float(F16)
bf16 = Float(BF16)
f32 = Single(F32)
f64 = DoubleFloat(F64)
