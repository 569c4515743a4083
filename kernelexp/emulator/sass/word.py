"""Fields of the 128-bit instruction word, which are the same from sm_70 to sm_120.

The text leaves out the scheduler's control field and rounds floating-point literals.
"""

from __future__ import annotations

from kernelexp.emulator.sass.syntax import Control

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


def destination(word: int) -> int:
    return field(word, 16, 8)


def control(word: int) -> Control:
    return Control(
        stall=field(word, 105, 4),
        stays=bool(field(word, 109, 1)),
        writes=field(word, 110, 3),
        reads=field(word, 113, 3),
        waits=field(word, 116, 6),
        reuse=field(word, 122, 4),
    )
