"""What SASS does with the bits of 32-bit words: logic, bytes, shifts, fields."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.formats import Bits, Mask

_MODES = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def lop3(a: Bits, b: Bits, c: Bits, table: int) -> Bits:
    """Any logic function of three words, by its truth table."""
    if table == 0xC0:
        return a & b
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for index in range(8):
        if table >> index & 1:
            term = a if index & 4 else ~a
            term = term & (b if index & 2 else ~b)
            result |= term & (c if index & 1 else ~c)
    return result


def truth(table: int, p: Mask, q: Mask, r: Mask) -> Mask:
    """The same of three predicates."""
    index = p.astype(np.uint8) << 2 | q.astype(np.uint8) << 1 | r.astype(np.uint8)
    result: Mask = (np.uint8(table) >> index & np.uint8(1)).astype(bool)
    return result


def permute(a: Bits, selector: Bits, b: Bits, mode: str = "") -> Bits:
    """Picks four bytes of {b, a}; bit 3 of a choice repeats the byte's sign."""
    if mode:
        selector = np.array(_MODES[mode], np.uint32)[selector & 3]
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    result = np.zeros(both.shape, np.uint32)
    for position in range(4):
        chosen = selector >> np.uint32(4 * position) & 15
        byte = (both >> (chosen & 7).astype(np.uint64) * np.uint64(8) & 0xFF).astype(np.uint32)
        byte = np.where(chosen & 8, (byte >> 7) * np.uint32(0xFF), byte)
        result |= byte << np.uint32(8 * position)
    return result


def funnel(
    low: Bits, shift: Bits, high: Bits, *, left: bool, kind: str, wraps: bool, upper: bool
) -> Bits:
    """A shift of {high, low}, of which the upper or the lower word is kept.

    kind "U32", "S32", "U64" or "S64": the shift wraps at, or is clamped to, as many bits.
    """
    width = int(kind[1:])
    both = high.astype(np.uint64) << np.uint64(32) | low
    count = shift & np.uint32(width - 1) if wraps else np.minimum(shift, np.uint32(width))
    gone, inside = count >= 64, np.minimum(count, 63).astype(np.uint64)
    if left:
        moved = np.where(gone, 0, both << inside)
    elif kind[0] == "S":
        moved = (both.view(np.int64) >> inside.astype(np.int64)).view(np.uint64)
    else:
        moved = np.where(gone, 0, both >> inside)
    return (moved >> np.uint64(32) if upper else moved).astype(np.uint32)


def highest(a: Bits, *, signed: bool, shift: bool) -> Bits:
    """The highest bit (signed: that differs from the sign), all ones without any; shift: how far
    it is from bit 31."""
    if signed:
        a = np.where(a >= np.uint32(1 << 31), ~a, a)
    # A float64 holds 32 bits: its exponent is where the highest one stands.
    _, exponent = np.frexp(a.astype(np.float64))
    position = exponent - 1
    return (
        np.where(a == 0, -1, 31 - position if shift else position)
        .astype(np.int64)
        .astype(np.uint32)
    )


def reverse(a: Bits) -> Bits:
    octets = np.ascontiguousarray(a)[..., None].view(np.uint8)[..., ::-1]
    flipped = np.packbits(np.unpackbits(octets, axis=-1), axis=-1, bitorder="little")
    return np.ascontiguousarray(flipped).view(np.uint32)[..., 0]


def mask(position: Bits, length: Bits, *, wraps: bool) -> Bits:
    """`length` ones from bit `position` on."""
    if wraps:
        position, length = position & np.uint32(31), length & np.uint32(31)
    ones = (np.uint64(1) << np.minimum(length, 32).astype(np.uint64)) - np.uint64(1)
    moved = ones << np.minimum(position, 32).astype(np.uint64)
    return np.where(position >= 32, 0, moved).astype(np.uint32)


def extend(a: Bits, length: Bits, *, signed: bool, wraps: bool) -> Bits:
    """The low `length` bits, extended by zeros or by their sign."""
    length = length & np.uint32(31) if wraps else np.minimum(length, np.uint32(32))
    left = (32 - length).astype(np.uint64)
    wide = (a.astype(np.uint64) << left & np.uint64(0xFFFF_FFFF)).astype(np.uint32)
    if signed:
        moved = (wide.view(np.int32).astype(np.int64) >> left.astype(np.int64)).astype(np.uint32)
    else:
        moved = (wide.astype(np.uint64) >> left).astype(np.uint32)
    return np.where(length == 0, 0, moved).astype(np.uint32)
