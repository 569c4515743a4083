"""f64: nearest in NumPy's own arithmetic, the other roundings on integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from warpsim.arithmetic import exact
from warpsim.arithmetic.formats import F64, Bits, Double
from warpsim.arithmetic.ieee import Float, quiet, signed_zero


class DoubleFloat(Float):
    """f64: nearest in NumPy's own arithmetic, the rest on integers; NaN operands keep payloads.

    Of several NaN operands the hardware takes b's, then c's, then a's, with the quiet bit set.
    Its division is a program, which takes the dividend's.
    """

    @quiet
    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        x, y = a.view(np.float64), b.view(np.float64)
        nearest = signed_zero(np.asarray(x + y), x, y, rounding)
        return self._nans(self._round(lambda p, q: p + q, nearest, rounding, x, y), b, a)

    def sub(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        # A NaN's sign is not changed: the negation is part of the addition.
        negated = np.where(self.isnan(b), b, b ^ self._sign)
        return self.add(a, negated, rounding=rounding)

    @quiet
    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        x, y = a.view(np.float64), b.view(np.float64)
        nearest = np.asarray(x * y)
        return self._nans(self._round(lambda p, q: p * q, nearest, rounding, x, y), b, a)

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
        x, y, z = a.view(np.float64), b.view(np.float64), c.view(np.float64)
        product = np.asarray(x * y)
        # Where the product overflows and z is an infinity, only z decides.
        overflowed = np.isinf(product) & np.isfinite(x) & np.isfinite(y)
        product = np.where(overflowed & np.isinf(z), 0.0, product)
        nearest = signed_zero(product + z, product, z, rounding)
        result = exact.elementwise(lambda p, q, r: p * q + r, nearest, rounding, x, y, z)
        return self._nans(result, b, c, a)

    @quiet
    def div(self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        x, y = a.view(np.float64), b.view(np.float64)
        nearest = np.asarray(x / y)
        # A zero divisor leaves nothing to round.
        divisor = np.where(y == 0, np.nan, y)
        result = self._round(lambda p, q: p / q, nearest, rounding, x, divisor)
        return self._nans(result, a, b)

    def rcp(self, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
        return self.div(np.full_like(a, self._one), a, rounding=rounding)

    @quiet
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
        """For a NaN result the first operand that is NaN, made quiet, else the canonical one."""
        chosen: Bits = np.full_like(result, self._nan)
        for operand in reversed(operands):
            quiet = operand | np.uint64(1 << (F64.precision - 2))
            chosen = np.where(self.isnan(operand), quiet, chosen)
        return np.where(self.isnan(result), chosen, result)


f64 = DoubleFloat(F64)
