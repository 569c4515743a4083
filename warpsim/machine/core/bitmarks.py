"""What becomes of marked bytes where bits are masked, shifted and picked.

A mark has a bit for each byte that nobody wrote. What an operation drops does not matter: a byte
that is masked out, the other operand of an `and` with zero.
"""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array

_STEMS = frozenset({"and", "or", "xor", "not", "shl", "shr", "bfe", "prmt"})
_BITS = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little") * 255
).view(np.uint64)[:, 0]
"""The bits of the bytes that a mark names."""


def bit_operation(opcode: str) -> str:
    """The stem of an operation that is followed bit by bit; "" for others."""
    stem, *rest = opcode.split(".")
    plain = stem in _STEMS and not (stem in ("shr", "bfe") and rest[-1][0] == "s")
    return stem if plain and not (stem == "prmt" and len(rest) > 1) else ""


def marks_of_bits(stem: str, marks: list[Array], values: list[Array]) -> Array | None:
    """The bytes of the result that depend on marked bytes; None if that can't be told."""
    if not stem or any(mark.any() for mark in marks[2:]):
        return None
    unknown = [_BITS[mark & 0xFF] for mark in marks]
    known = [_wide(value) for value in values]
    if stem in ("and", "or"):
        bits = _logic(unknown, known, absorbs=0 if stem == "and" else 1)
    elif stem in ("xor", "not"):
        bits = np.bitwise_or.reduce(unknown, axis=0)
    elif marks[1].any() and stem != "prmt":
        return None
    elif stem == "prmt":
        return _picked(marks, values[2])
    else:
        bits = _shifted(stem, unknown[0], known)
    octets = np.ascontiguousarray(bits)[..., None].view(np.uint8) != 0
    return np.packbits(octets, axis=-1, bitorder="little")[..., 0].astype(np.uint16)


def _wide(value: Array) -> Array:
    if value.dtype == bool:
        return np.where(value, ~np.uint64(0), np.uint64(0))
    return value.astype(np.uint64)


def _logic(unknown: list[Array], known: list[Array], absorbs: int) -> Array:
    """An operand's bit matters unless the other's is known to absorb it."""
    (a, b), (x, y) = unknown, (~v if absorbs else v for v in known)
    result: Array = (a & (y | b)) | (b & (x | a))
    return result


def _shifted(stem: str, bits: Array, known: list[Array]) -> Array:
    amount = np.minimum(known[1], np.uint64(63))
    if stem == "shl":
        return bits << amount
    bits = bits >> amount
    if stem == "bfe":
        length = np.minimum(known[2], np.uint64(63))
        bits = bits & ((np.uint64(1) << length) - np.uint64(1))
    return bits


def _picked(marks: list[Array], selector: Array) -> Array:
    both = (marks[0] & 0xF) | (marks[1] & 0xF) << 4
    result = np.zeros(both.shape, np.uint16)
    for position in range(4):
        chosen = (selector >> np.uint32(4 * position) & 7).astype(np.uint16)
        result |= (both >> chosen & 1) << np.uint16(position)
    return result
