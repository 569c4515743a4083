"""f16 and bf16, whose commonest forms round to nearest and need no general rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic.formats import BF16, F16, Bits, Double, Mask, decode
from warpsim.arithmetic.ieee import Float, quiet

_NAN = np.uint16(0x7FFF)


class Half(Float):
    """A 16-bit format. Operands are exact in f32 and float64; what those lose is watched for."""

    @quiet
    def add(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        if rounding != "rn" or ftz or sat:
            return super().add(a, b, rounding=rounding, ftz=ftz, sat=sat)
        # f32's 24 bits are 2p + 2 or more: rounding a sum twice is rounding it once (Figueroa,
        # "When is double rounding innocuous?", 1995).
        return self._from_f32((self._wide(a) + self._wide(b)).view(np.uint32))

    @quiet
    def mul(
        self, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
    ) -> Bits:
        product = self._wide(a) * self._wide(b)
        magnitude = np.abs(product)
        # Exact in f32, but where it is subnormal or has vanished.
        tiny = (
            (magnitude < np.float32(2.0**-126))
            & (a & self._magnitude != 0)
            & (b & self._magnitude != 0)
        )
        if rounding != "rn" or ftz or sat or tiny.any():
            return super().mul(a, b, rounding=rounding, ftz=ftz, sat=sat)
        return self._from_f32(product.view(np.uint32))

    def _wide(self, a: Bits) -> npt.NDArray[np.float32]:
        if self.format is F16:
            return a.view(np.float16).astype(np.float32)
        return (a.astype(np.uint32) << np.uint32(16)).view(np.float32)

    def _from_f32(self, a: Bits) -> Bits:
        return f16_from_f32(a) if self.format is F16 else bf16_from_f32(a)

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
        if rounding == "rn" and not (ftz or sat):
            product = decode(a, self.format) * decode(b, self.format)
            addend = decode(c, self.format)
            result = self._nearest(product + addend, product, addend)
            if result is not None:
                return self.relu(result) if relu else result
        return super().fma(a, b, c, rounding=rounding, ftz=ftz, sat=sat, relu=relu)

    def _nearest(self, total: Double, x: Double, y: Double) -> Bits | None:
        """total = x + y rounded to nearest; None where float64's own rounding might show."""
        y_part = total - x
        error = (x - (total - y_part)) + (y - y_part)
        if ((error != 0) & np.isfinite(total)).any():
            return None
        if self.format is F16:
            return _canonical(total.astype(np.float16).view(np.uint16), np.isnan(total))
        magnitude = np.abs(total)
        if ((magnitude < 2.0**-126) & (magnitude > 0)).any():
            return None
        bits = total.view(np.uint64)
        # 45 bits fewer, ties to even; what is left is exact in f32, whose upper half is bf16.
        kept = bits + np.uint64((1 << 44) - 1) + ((bits >> np.uint64(45)) & np.uint64(1))
        wide = (kept & ~np.uint64((1 << 45) - 1)).view(np.float64).astype(np.float32)
        upper = (wide.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return _canonical(upper, np.isnan(total))


def _canonical(bits: Bits, nan: Mask) -> Bits:
    return np.where(nan, _NAN, bits) if nan.any() else bits


@quiet
def f16_from_f32(a: Bits) -> Bits:
    """cvt.rn.f16.f32."""
    value = a.view(np.float32)
    return _canonical(value.astype(np.float16).view(np.uint16), np.isnan(value))


def bf16_from_f32(a: Bits) -> Bits:
    """cvt.rn.bf16.f32: the upper half of the pattern, rounded."""
    kept = a + (np.uint32(0x7FFF) + ((a >> np.uint32(16)) & np.uint32(1)))
    upper = (kept >> np.uint32(16)).astype(np.uint16)
    return _canonical(upper, (a & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000))


def f32_from_f16(a: Bits) -> Bits:
    """cvt.f32.f16: exact."""
    return _WIDENED[a]


@quiet
def _widened() -> Bits:
    codes = np.arange(1 << 16, dtype=np.uint16)
    wide = codes.view(np.float16).astype(np.float32).view(np.uint32)
    return np.where((codes & _NAN) > np.uint16(0x7C00), np.uint32(0x7FFFFFFF), wide)


_WIDENED = _widened()
"""The f32 of each f16: a fifth of the time of NumPy's conversion."""


def f32_from_bf16(a: Bits) -> Bits:
    """cvt.f32.bf16: exact; a NaN stays as it is."""
    return a.astype(np.uint32) << np.uint32(16)


f16 = Half(F16)
bf16 = Half(BF16)
