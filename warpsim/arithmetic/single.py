"""f32, whose commonest forms are compiled, or one or two NumPy operations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic import native
from warpsim.arithmetic.formats import F32, Bits, Double, sum_to_odd
from warpsim.arithmetic.ieee import Float, quiet


class Single(Float):
    """f32, whose commonest forms are compiled, or one or two NumPy operations."""

    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        if rounding != "rn" or sat:
            return super().add(a, b, rounding=rounding, ftz=ftz, sat=sat)
        total = native.single(native.ADD, a, b, b, flush=ftz)
        return self._add(a, b, ftz) if total is None else total

    @quiet
    def _add(self, a: Bits, b: Bits, ftz: bool) -> Bits:
        if ftz:
            a, b = self.flush(a), self.flush(b)
        return self._canonical(a.view(np.float32) + b.view(np.float32), ftz)

    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        if rounding != "rn" or sat:
            return super().mul(a, b, rounding=rounding, ftz=ftz, sat=sat)
        product = native.single(native.MUL, a, b, b, flush=ftz)
        return self._mul(a, b, ftz) if product is None else product

    @quiet
    def _mul(self, a: Bits, b: Bits, ftz: bool) -> Bits:
        if ftz:
            a, b = self.flush(a), self.flush(b)
        product = a.view(np.float32) * b.view(np.float32)
        if ftz and bool((np.abs(product) == np.float32(self._least)).any()):
            return super().mul(a, b, ftz=True)
        return self._canonical(product, ftz)

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
        result = native.single(native.FMA, a, b, c, flush=ftz)
        return self._fma(a, b, c, ftz) if result is None else result

    @quiet
    def _fma(self, a: Bits, b: Bits, c: Bits, ftz: bool) -> Bits:
        if ftz:
            a, b, c = self.flush(a), self.flush(b), self.flush(c)
        product, addend = self._value(a, False) * self._value(b, False), self._value(c, False)
        total = product + addend
        if self._may_round_twice(total):
            # Rounded to odd, so that f32's rounding is the only one.
            total = sum_to_odd(product, addend)
            if ftz and bool((np.abs(total) <= self._least).any()):
                return super().fma(a, b, c, ftz=True)
        return self._canonical(total.astype(np.float32), ftz)

    def _extreme(
        self, a: Bits, b: Bits, *, greatest: bool, ftz: bool, nan: bool, xorsign_abs: bool
    ) -> Bits:
        extreme = None
        if not (ftz or nan or xorsign_abs):
            extreme = native.single(native.MAX if greatest else native.MIN, a, b, b)
        if extreme is not None:
            return extreme
        how = {"ftz": ftz, "nan": nan, "xorsign_abs": xorsign_abs}
        return super()._extreme(a, b, greatest=greatest, **how)

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

    def _canonical(self, result: npt.NDArray[np.float32], ftz: bool) -> Bits:
        bits = np.asarray(result).view(np.uint32)
        if ftz:
            bits = self.flush(bits)
        nan = np.isnan(result)
        return np.where(nan, self._nan, bits) if nan.any() else bits

    def _native(self, a: Bits, ftz: bool) -> npt.NDArray[np.float32]:
        return (self.flush(a) if ftz else a).view(np.float32)


f32 = Single(F32)
