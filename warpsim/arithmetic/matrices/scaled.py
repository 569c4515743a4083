"""Scale factors of blocks of a matrix, UE8M0 and UE4M3, and products of such matrices.

UE8M0 is a power of two, 2**(code - 127); UE4M3 is E4M3 without its sign. Code 0xFF, or 0x7F, is
NaN.
"""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic import tensor
from warpsim.arithmetic.formats import BF16, E4M3, F32, Bits, Double, decode, encode
from warpsim.arithmetic.operands import SCALED, UE8M0_BIAS, Integers, code_table

_GROUP = 16
"""Products of E2M1 that are added exactly before they are scaled."""
_FRACTION = 35
"""Bits kept of a group's sum below the largest exponent."""
_F32_ZERO = -126
"""The exponent of a zero, of C or of a scale."""
_NAN = 0xFF


def mma(
    a: Bits, b: Bits, c: Bits | None, a_scales: Bits, b_scales: Bits, *, a_type: str, b_type: str
) -> Bits:
    """D = (A * scales) * (B * scales)^T + C of kind::mxf8f6f4: one scale in UE8M0 for each row.

    a [M, K], b [N, K], scales [M, 1] and [N, 1], codes of a byte; c and the result f32 [M, N]. The
    sum is tensor.mma's, with the scales' exponents added to those of the products (MMA-Sim).
    """
    return tensor.mma(
        _beneath(a_scales, a),
        _beneath(b_scales, b),
        c,
        a_type=a_type + SCALED,
        b_type=b_type + SCALED,
        precision=tensor.TCGEN05,
    )


def _beneath(scales: Bits, codes: Bits) -> Bits:
    return scales.astype(np.uint16) << np.uint16(8) | codes


def mma_e2m1(
    a: Bits, b: Bits, c: Bits | None, a_scales: Bits, b_scales: Bits, *, scale_type: str
) -> Bits:
    """The same of E2M1 with several scales per row, kind::mxf4 and kind::mxf4nvf4.

    Scales are [M, K / block]. By the model of MMA-Sim for K = 64: 16 products each are added
    exactly, times the significands of their two scales; these sums and C are truncated to 35 bits
    below the largest exponent, a sum's being that of its scales, added exactly, and truncated to
    f32. Five terms below 2**12 with 35 bits behind the point fit into float64.
    """
    addend = np.zeros((len(a), len(b)), np.uint32) if c is None else c
    left, right = (code_table("e2m1").values[codes] for codes in (a, b))
    sums, powers = [decode(addend, F32)], [_exponents(addend)]
    finite = np.isfinite(sums[0])
    sums[0] = np.where(finite, sums[0], 0.0)
    block = a.shape[1] // a_scales.shape[1]
    special = np.where(finite, 0.0, decode(addend, F32))
    for first in range(0, a.shape[1], _GROUP):
        group = slice(first, first + _GROUP)
        (x, x_power), (y, y_power) = (
            _significands(scales[:, first // block], scale_type) for scales in (a_scales, b_scales)
        )
        special = special + np.where(np.isnan(x)[:, None] | np.isnan(y)[None, :], np.nan, 0.0)
        x, y = np.nan_to_num(x), np.nan_to_num(y)
        power = x_power[:, None] + y_power[None, :]
        sums.append(np.ldexp(left[:, group] @ right[:, group].T * np.outer(x, y), power))
        powers.append(power)
    unit = np.ldexp(1.0, np.max(powers, axis=0) - _FRACTION)
    total = sum((np.trunc(term / unit) for term in sums), np.zeros(addend.shape)) * unit
    result = tensor.truncated_f32(total, 24)
    return np.where(special == 0, result, encode(special, F32))


def _exponents(patterns: Bits) -> Integers:
    """Of f32: a subnormal's and a zero's is the smallest."""
    field = (patterns >> np.uint32(23) & np.uint32(255)).astype(np.int64)
    return np.maximum(field, 1) - 127


def _significands(codes: Bits, scale_type: str) -> tuple[Double, Integers]:
    """(significand in [0, 2), or NaN, and exponent) of scales."""
    if scale_type == "ue8m0":
        exponents = codes.astype(np.int64) - UE8M0_BIAS
        return np.where(codes == _NAN, np.nan, 1.0), exponents
    values = decode(codes & np.uint8(0x7F), E4M3)
    exponents = np.maximum(codes.astype(np.int64) >> 3 & 15, 1) - 7
    significands = np.ldexp(values, -exponents)
    return significands, np.where(values == 0, _F32_ZERO, exponents)


# cvt


def pack_ue8m0(high: Bits, low: Bits, *, up: bool, satfinite: bool) -> Bits:
    """Two f32 to a pair of UE8M0, by their magnitudes, toward zero or up (as cuda_fp8.hpp converts
    for architectures without the instruction); NaN to 0xFF, infinity to 0xFE with satfinite."""
    codes = []
    for bits in (high, low):
        size = bits & np.uint32(0x7FFFFFFF)
        code = size >> np.uint32(23)
        if up:
            inexact = (size & np.uint32(0x7FFFFF) != 0) & (size > 0x400000) & (size < 0x7F800000)
            code = code + inexact.astype(np.uint32)
        if satfinite:
            code = np.where((size <= 0x7F800000) & (code == _NAN), _NAN - 1, code)
        codes.append(code.astype(np.uint16))
    return codes[0] << np.uint16(8) | codes[1]


def unpack_ue8m0(pair: Bits) -> Bits:
    """A pair of UE8M0 to a pair of bf16 (uint32); exact."""
    codes = np.stack([pair & np.uint16(0xFF), pair >> np.uint16(8)]).astype(np.int64)
    values = np.where(codes == _NAN, np.nan, np.ldexp(1.0, codes - UE8M0_BIAS))
    low, high = encode(values, BF16).astype(np.uint32)
    return low | high << np.uint32(16)
