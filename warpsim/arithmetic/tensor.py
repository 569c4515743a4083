"""The tensor core's fused dot product: aligned, truncated, summed exactly, truncated again.

One instruction adds K products and C as a single sum:

1. e_max is the largest exponent of the terms; a product's is the sum of its operands' (its
   significand lies in [0, 4) and is not normalised), and zeros have none;
2. each term is truncated toward zero to a multiple of 2**(e_max - F);
3. the terms are added exactly, and the sum is truncated to the result's format.

That is the model of MMA-Sim (arXiv 2511.10909); warpsim/docs/conformance.md says on which
instructions an H200 agreed with it bit for bit.

Speed. Step 3 is exact in float64: K + 1 <= 33 terms below 4 * 2**e_max, all multiples of
2**(e_max - F), need at most F + 2 + 6 bits, 33 of float64's 53. So a float64 matrix product in any
order, fused or not, gives step 3's sum wherever step 2 loses nothing of the products, and that
holds where the lowest bit of A's row times the lowest bit of B's row reaches 2**(e_max - F).
The other elements are computed term by term. Compiled code computes them so in integers, and in
float32 those of which step 2 loses nothing and whose products add up to 24 bits at most.
"""

from __future__ import annotations

import msgspec
import numpy as np

from warpsim.arithmetic import floats, fp8, native
from warpsim.arithmetic.formats import F16, F32, Bits, Double, Format, Mask, decode, encode
from warpsim.arithmetic.operands import ZERO_EXPONENT, Integers, Operand, operand

_ROWS = 32
"""Rows worked on at a time: arrays of 32 x 256 float64 stay in a core's cache and are reused, and
OpenBLAS starts no threads for a product of 32 x 256 x 32, with which processes would disturb each
other."""
_LEAST_UNIT = -512
"""Exponent below that of every element with a term that is not zero; the reciprocal of such a unit
times any operand is finite, so that its product with a zero is zero."""
_LEAST_F16 = np.float32(2.0**-14)
"""The least normal number."""
_FEW = 1 / 8
"""Share of elements below which gathering them is cheaper than passing over all."""


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """How a tensor instruction adds."""

    fraction_bits: int
    """F: bits kept of a term below the largest exponent."""
    output_bits: int
    """Significand bits of an f32 result, the hidden one included: 24, or 14 (e8m13)."""


TCGEN05 = Precision(fraction_bits=25, output_bits=24)
WGMMA = Precision(fraction_bits=25, output_bits=24)
WGMMA_FP8 = Precision(fraction_bits=13, output_bits=14)
MMA_SYNC = Precision(fraction_bits=25, output_bits=24)


def mma(
    a: Bits,
    b: Bits,
    c: Bits | None,
    *,
    a_type: str,
    b_type: str | None = None,
    precision: Precision,
    out: Bits | None = None,
) -> Bits:
    """D = A * B^T + C of one instruction; a [M, K], b [N, K], c and the result f32 [M, N].

    out: an array with rows without gaps that the result goes to; it may be c.
    """
    fraction, bits = precision.fraction_bits, precision.output_bits
    product = native.mma(a, b, c, a_type, b_type or a_type, fraction, bits, out)
    if product is not None:
        return product
    left, right = operand(a, a_type), operand(b, b_type or a_type)
    addend = np.zeros((len(a), len(b)), np.uint32) if c is None else c
    total = _aligned_sum(left, right, addend, F32, fraction)
    result = _with_special(truncated_f32(total, bits), left, right, addend, F32)
    if out is not None:
        out[...] = result
    return result if out is None else out


def mma_f16(
    a: Bits,
    b: Bits,
    c: Bits | None,
    *,
    a_type: str,
    b_type: str | None = None,
    precision: Precision,
) -> Bits:
    """The same with C and D in f16 (uint16): the exact sum is rounded to nearest even."""
    wide = None if c is None else c.view(np.float16).astype(np.float32)
    # Of a subnormal C the exponent counts as f16 has it.
    if wide is None or not ((np.abs(wide) < _LEAST_F16) & (wide != 0)).any():
        patterns = None if wide is None else wide.view(np.uint32)
        fraction = precision.fraction_bits
        sums = native.mma(a, b, patterns, a_type, b_type or a_type, fraction, native.TO_ODD)
        if sums is not None:
            with np.errstate(over="ignore"):
                return _positive_zero(sums.view(np.float32).astype(np.float16).view(np.uint16), F16)
    left, right = operand(a, a_type), operand(b, b_type or a_type)
    addend = np.zeros((len(a), len(b)), np.uint16) if c is None else c
    total = _aligned_sum(left, right, addend, F16, precision.fraction_bits)
    rounded = _positive_zero(encode(total, F16), F16)
    return _with_special(rounded, left, right, addend, F16)


def mma_sync_fp8(a: Bits, b: Bits, c: Bits, *, a_type: str, b_type: str, f16: bool = False) -> Bits:
    """mma.sync m16n8k32 on E4M3 and E5M2 as ptxas 13.0 makes it for sm_90: no such instruction.

    The codes are widened to f16; two m16n8k16 follow, one over bytes 0 and 1 of each word of a row,
    one over bytes 2 and 3, without C; an ordinary addition brings C in.
    """
    total: Bits | None = None
    for first in (0, 2):
        columns = [k for k in range(a.shape[1]) if k % 4 in (first, first + 1)]
        left, right = fp8.as_f16(a[:, columns], a_type), fp8.as_f16(b[:, columns], b_type)
        multiply = mma_f16 if f16 else mma
        total = multiply(left, right, total, a_type="f16", precision=MMA_SYNC)
    assert total is not None
    return (floats.f16 if f16 else floats.f32).add(total, c)


def mma_int8(
    a: Bits, b: Bits, c: Bits | None, *, a_signed: bool, b_signed: bool, satfinite: bool = False
) -> Bits:
    """D = A * B^T + C of bytes [M, K] and [N, K] in s32 (uint32 patterns): exact, then wrapped."""
    # |product| <= 2**16 and K <= 64: float64's matrix product is exact, and uses the BLAS.
    left = a.view(np.int8 if a_signed else np.uint8).astype(np.float64)
    right = b.view(np.int8 if b_signed else np.uint8).astype(np.float64)
    total = (left @ right.T).astype(np.int64)
    if c is not None:
        total += c.view(np.int32)
    if satfinite:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return (total & 0xFFFFFFFF).astype(np.uint32)


def _aligned_sum(left: Operand, right: Operand, c: Bits, fmt: Format, fraction: int) -> Double:
    """Steps 1 to 3 but for the final rounding, with NaNs and infinities counted as zeros."""
    addend, addend_exponent = _addend(c, fmt)
    cuts = np.maximum(_product_exponent(left, right), addend_exponent) - np.int16(fraction)
    total = np.empty(addend.shape)
    transposed = np.ascontiguousarray(right.values.T)
    for first in range(0, len(total), _ROWS):
        rows = slice(first, first + _ROWS)
        np.matmul(left.values[rows], transposed, out=total[rows])
        cut, exponent = cuts[rows], addend_exponent[rows]
        lossy = left.low[rows, None] + right.low[None, :] < cut
        # A normal C's lowest bit may lie below the cut; a zero has none.
        clipped = (exponent - np.int16(fmt.precision - 1) < cut) & (exponent != ZERO_EXPONENT)
        if not (lossy.any() or clipped.any()):
            total[rows] += addend[rows]
            continue
        unit = _power_of_two(cut)
        if lossy.mean() > _FEW:
            total[rows] = _sum_of_all(left.values[rows], right.values, unit)
        elif lossy.any():
            total[rows][lossy] = _sum_of_some(left.values[rows], right.values, unit, lossy)
        total[rows] += np.trunc(addend[rows] / unit) * unit
    return total


def _addend(c: Bits, fmt: Format) -> tuple[Double, Integers]:
    value = decode(c, fmt)
    if not np.isfinite(value).all():
        value = np.where(np.isfinite(value), value, 0.0)
    width = fmt.precision - 1
    field = (c >> fmt.dtype(width)).astype(np.int16) & np.int16((1 << (fmt.bits - 1 - width)) - 1)
    exponent = np.maximum(field, 1) + np.int16(fmt.min_exponent - 1)
    exponent[value == 0] = ZERO_EXPONENT
    return value, exponent


def _product_exponent(left: Operand, right: Operand) -> Integers:
    """The largest product exponent of each element: a matrix product over (max, +)."""
    columns = np.ascontiguousarray(left.exponents.T)
    others = np.ascontiguousarray(right.exponents.T)
    highest: Integers = columns[0][:, None] + others[0][None, :]
    step = np.empty_like(highest)
    for column, other in zip(columns[1:], others[1:], strict=True):
        np.add(column[:, None], other[None, :], out=step)
        np.maximum(highest, step, out=highest)
    return highest


def _power_of_two(exponent: Integers) -> Double:
    """2.0**exponent, clamped where only zeros are scaled by it."""
    biased = np.maximum(exponent.astype(np.int64), _LEAST_UNIT) + 1023
    return (biased << 52).view(np.float64)


def _sum_of_all(left: Double, right: Double, unit: Double) -> Double:
    """Every element's terms truncated to multiples of its unit, and added."""
    reciprocal = 1.0 / unit
    total = np.zeros_like(unit)
    term = np.empty_like(unit)
    for column, other in zip(left.T, np.ascontiguousarray(right.T), strict=True):
        np.multiply(reciprocal, other[None, :], out=term)
        np.multiply(term, column[:, None], out=term)
        np.trunc(term, out=term)
        np.add(total, term, out=total)
    return np.multiply(total, unit, out=total)


def _sum_of_some(left: Double, right: Double, unit: Double, where: Mask) -> Double:
    row, column = np.nonzero(where)
    steps = unit[where]
    terms = left[row] * right[column]
    terms /= steps[:, None]
    np.trunc(terms, out=terms)
    return terms.sum(axis=1) * steps


def truncated_f32(total: Double, significand_bits: int) -> Bits:
    """Toward zero, but past the largest finite value to infinity; a zero is always +0."""
    magnitude = np.abs(total)
    if magnitude.max(initial=0.0) < 2.0**128 and not ((magnitude < 2.0**-126) & (total != 0)).any():
        lost = np.uint64((1 << (53 - significand_bits)) - 1)
        kept = (total.view(np.uint64) & ~lost).view(np.float64) + 0.0
        return kept.astype(np.float32).view(np.uint32)
    bits = encode(total, F32, "rz") & ~np.uint32((1 << (24 - significand_bits)) - 1)
    infinite = np.where(total < 0, np.uint32(0xFF800000), np.uint32(0x7F800000))
    bits = np.where(magnitude >= 2.0**128, infinite, bits)
    return _positive_zero(bits, F32)


def _positive_zero(bits: Bits, fmt: Format) -> Bits:
    return np.where(bits == fmt.sign, fmt.dtype(0), bits)


def _with_special(result: Bits, left: Operand, right: Operand, c: Bits, fmt: Format) -> Bits:
    """Puts NaNs and infinities where A, B or C hold any that reach the sum."""
    addend = decode(c, fmt)
    if left.special is None and right.special is None and np.isfinite(addend).all():
        return result
    a = left.values if left.special is None else left.special
    b = right.values if right.special is None else right.special
    with np.errstate(invalid="ignore"):
        total = a @ b.T + addend
    return np.where(np.isfinite(total), result, encode(total, fmt))
