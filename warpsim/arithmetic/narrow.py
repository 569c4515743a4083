"""Floating-point numbers of four and six bits: E2M1, E2M3, E3M2, without infinity and NaN."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.formats import F16, F32, Bits, Double, Format, decode

_SHAPES = {"e2m1": (2, 1, 1), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3)}
"""Bits of the exponent and of the fraction, and the exponent's bias (OCP Microscaling Formats)."""


def _magnitudes(kind: str) -> Double:
    exponent_bits, fraction_bits, bias = _SHAPES[kind]
    code = np.arange(1 << exponent_bits + fraction_bits)
    field, fraction = code >> fraction_bits, code & (1 << fraction_bits) - 1
    significand = np.where(field > 0, fraction + (1 << fraction_bits), fraction)
    return np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - bias - fraction_bits)


_VALUES = {kind: _magnitudes(kind) for kind in _SHAPES}


def pack(high: Bits, low: Bits, kind: str, *, relu: bool, source: Format = F32) -> Bits:
    """Two floats to a pair of codes, uint8 for E2M1, uint16 for the others; to nearest even, beyond
    the largest number to that, NaN to the largest positive one."""
    first, second = (_code(decode(x, source), kind, relu).astype(np.uint16) for x in (high, low))
    if kind == "e2m1":
        return (first << np.uint16(4) | second).astype(np.uint8)
    return first << np.uint16(8) | second


def _code(value: Double, kind: str, relu: bool) -> Bits:
    values = _VALUES[kind]
    if relu:
        value = np.where(value < 0, 0.0, value)
    size = np.minimum(np.where(np.isnan(value), np.inf, np.abs(value)), values[-1])
    upper = np.minimum(np.searchsorted(values, size), len(values) - 1)
    lower = np.maximum(upper - 1, 0)
    up, down = values[upper] - size, size - values[lower]
    nearest = np.where((up < down) | ((up == down) & (upper % 2 == 0)), upper, lower)
    nearest = np.where(values[upper] == size, upper, nearest).astype(np.uint8)
    sign = 1 << sum(_SHAPES[kind][:2])
    negative = np.signbit(value) & ~np.isnan(value)
    return np.where(negative, nearest | np.uint8(sign), nearest).astype(np.uint8)


def unpack(pair: Bits, kind: str, *, relu: bool) -> Bits:
    """A pair of codes to a pair of f16 (uint32); exact."""
    shift, width = (4, 4) if kind == "e2m1" else (8, 6)
    word, mask = pair.astype(np.uint32), np.uint32((1 << width) - 1)
    low = _as_f16(word & mask, kind, relu)
    high = _as_f16(word >> np.uint32(shift) & mask, kind, relu)
    return low | high << np.uint32(16)


def _as_f16(code: Bits, kind: str, relu: bool) -> Bits:
    sign = 1 << sum(_SHAPES[kind][:2])
    negative = (code & sign) != 0
    value = _VALUES[kind][code & np.uint32(sign - 1)]
    pattern = value.astype(np.float16).view(np.uint16).astype(np.uint32)
    if relu:
        return np.where(negative, 0, pattern).astype(np.uint32)
    return np.where(negative, pattern | F16.sign, pattern).astype(np.uint32)


# Codes of tensor instructions, a byte each in the low bits, from how they lie in memory.


def of_chunks(data: Bits, bits: int) -> Bits:
    """From bytes [rows, 16 * n]: each 16 bytes begin with 16 codes, one after another, from the low
    bits on; what is left of them is padding (PTX ISA, "Packing format used for matrix A and B by
    .kind::mxf8f6f4 in Shared Memory"; tcgen05.cp's b4x16_p64 and b6x16_p32)."""
    chunks = data.reshape(-1, 16)[:, : 2 * bits]
    bits_of_chunk = np.unpackbits(chunks, axis=1, bitorder="little").reshape(-1, 16, bits)
    return np.packbits(bits_of_chunk, axis=2, bitorder="little").reshape(data.shape)


def in_containers(codes: Bits, bits: int) -> Bits:
    """Bytes as tensor memory has them: codes of six bits in the low bits of a byte, of four bits in
    its middle (PTX ISA, mma: "packed in an 8-bit container"; Figures 195 to 201 of tcgen05)."""
    return codes << np.uint8(2) if bits == 4 else codes


def of_containers(data: Bits, bits: int) -> Bits:
    return data >> np.uint8(2) if bits == 4 else data


def of_pairs(data: Bits) -> Bits:
    """From bytes [rows, n] of two codes of four bits each, the first low, as MMA-Sim and CUTLASS
    have them: [rows, 2 * n]."""
    return np.stack([data & np.uint8(15), data >> np.uint8(4)], axis=-1).reshape(len(data), -1)


def of_nibbles(data: Bits, kind: str) -> Bits:
    """The same as of_pairs, of integers: s4 become the bytes of s8, u4 those of u8."""
    codes = of_pairs(data)
    return (codes ^ np.uint8(8)) - np.uint8(8) if kind == "s4" else codes
