"""Fields of the 128-bit instruction word, which are the same from sm_70 to sm_120.

The text rounds floating-point literals.
"""

from __future__ import annotations

BYTES = 16
"""Of an instruction."""


def field(word: int, first: int, bits: int) -> int:
    return word >> first & ((1 << bits) - 1)


def immediate(word: int) -> int:
    """The literal of 32 bits, in the forms that have one."""
    return field(word, 32, 32)


def guard(word: int) -> tuple[int, bool]:
    """(predicate, negated); (7, False) for always."""
    return field(word, 12, 3), bool(field(word, 15, 1))


def at(code: bytes, address: int) -> int:
    """The word of the instruction at an address."""
    return int.from_bytes(code[address : address + BYTES], "little")
