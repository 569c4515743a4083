"""The register file: operands as places in a list of arrays, resolved once when a kernel is loaded.

A decoded instruction reads `R[i]`: an array of shape [warps, 32] of unsigned bit patterns, whether
the operand is a register, a literal, a parameter or a special register. Registers of all warps lie
in one array each, so `R` of a set of warps is a list of slices of them, and one NumPy call executes
an instruction for every warp that stands at it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias, cast

import msgspec
import numpy as np

from kernelexp.emulator.machine.arrays import DTYPES, POISON, Array
from kernelexp.emulator.machine.native_layout import SLOT

WORD = 32


class Register(msgspec.Struct, frozen=True):
    """The low `bits` of a register of `width` bits."""

    name: str
    width: int
    bits: int


class Literal(msgspec.Struct, frozen=True):
    value: int
    bits: int


class Sink(msgspec.Struct, frozen=True):
    """Where a result goes that nobody wants."""

    bits: int = 64


class Special(msgspec.Struct, frozen=True):
    """A special register: see specials.py."""

    name: str
    bits: int


class Symbol(msgspec.Struct, frozen=True):
    """The address of a variable or a parameter."""

    name: str
    offset: int
    bits: int


class Argument(msgspec.Struct, frozen=True):
    """What the launch gives for a parameter, from a byte of it on."""

    name: str
    offset: int
    bits: int


class Constant(msgspec.Struct, frozen=True):
    """A word of a constant bank: see constants.py."""

    bank: int
    offset: int
    bits: int = WORD


Slot: TypeAlias = Register | Literal | Sink | Special | Symbol | Argument | Constant


class RegisterFile:
    """The arrays behind the slots of one kernel, for `warps` warps."""

    def __init__(self, slots: list[Slot], warps: int) -> None:
        widths = {slot.name: slot.width for slot in slots if isinstance(slot, Register)}
        names = [name for name, width in widths.items() if width == WORD]
        self.words: Array = np.full((len(names), warps, 32), POISON[WORD], DTYPES[WORD])
        """The registers of 32 bits, [registers, warps, 32]: those of a matrix are taken at once."""
        self.registers: dict[str, Array] = dict(zip(names, self.words, strict=True))
        literals = _literals([slot for slot in slots if isinstance(slot, Literal)], warps)
        self.arrays = [
            literals[slot] if isinstance(slot, Literal) else self._array(slot, warps)
            for slot in slots
        ]
        rows = {name: row for row, name in enumerate(names)}
        self._rows = [
            rows.get(slot.name, -1) if isinstance(slot, Register) and slot.bits == WORD else -1
            for slot in slots
        ]

    def rows_of(self, slots: Sequence[int]) -> Array:
        """Where `words` has these slots; -1 for what is not a register of 32 bits."""
        return np.array([self._rows[slot] for slot in slots])

    def _array(self, slot: Slot, warps: int) -> Array:
        if not isinstance(slot, Register):
            return np.zeros((warps, 32), DTYPES[slot.bits])
        if slot.name not in self.registers:
            filled = np.full((warps, 32), POISON[slot.width], DTYPES[slot.width])
            self.registers[slot.name] = filled
        register = self.registers[slot.name]
        if slot.bits == slot.width:
            return register
        # A narrow read takes the low part: every width/bits-th element of the narrower view.
        return register.view(DTYPES[slot.bits])[:, :: slot.width // slot.bits]

    def poison(self) -> None:
        for register in self.registers.values():
            register.fill(POISON[register.dtype.itemsize * 8 if register.dtype != bool else 1])

    @functools.cached_property
    def layout(self) -> Array:
        """Where compiled code finds the slots."""
        rows = [(a.__array_interface__["data"][0], *a.strides) for a in self.arrays]
        return np.array(rows, SLOT)

    def rows(self, warps: slice) -> list[Array]:
        """The slots of these warps, by index."""
        return cast("list[Array]", _Rows(self.arrays, warps))


def _literals(slots: Sequence[Literal], warps: int) -> dict[Slot, Array]:
    """Arrays of literals, which are made together: there may be thousands."""
    arrays: dict[Slot, Array] = {}
    for bits in {slot.bits for slot in slots}:
        own = [slot for slot in slots if slot.bits == bits]
        values = np.array([slot.value for slot in own], DTYPES[bits])
        arrays.update(zip(own, values[:, None, None].repeat(warps, 1).repeat(32, 2), strict=True))
    return arrays


class _Rows(dict[int, Array]):
    """Stands for the list of all slots of a set of warps, most of which are never asked for."""

    def __init__(self, arrays: list[Array], warps: slice) -> None:
        super().__init__()
        self._arrays = arrays
        self._warps = warps

    def __missing__(self, slot: int) -> Array:
        rows = self[slot] = self._arrays[slot][self._warps]
        return rows
