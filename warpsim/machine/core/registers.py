"""The register file: operands as places in a list of arrays, resolved once when a kernel is loaded.

A decoded instruction reads `R[i]`: an array of shape [warps, 32] of unsigned bit patterns, whether
the operand is a register, a literal, a parameter or a special register. Registers of all warps lie
in one array each, so `R` of a set of warps is a list of slices of them, and one NumPy call executes
an instruction for every warp that stands at it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

import msgspec
import numpy as np

from warpsim.machine.core.arrays import DTYPES, POISON, Array
from warpsim.machine.core.native_layout import SLOT

WORD = 32
WARP = 32


class RegisterPart(msgspec.Struct, frozen=True):
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


class SpecialRegister(msgspec.Struct, frozen=True):
    """A special register: see specials.py."""

    name: str
    bits: int


class SymbolAddress(msgspec.Struct, frozen=True):
    """The address of a variable or a parameter."""

    name: str
    offset: int
    bits: int


class Argument(msgspec.Struct, frozen=True):
    """What the launch gives for a parameter, from a byte of it on."""

    name: str
    offset: int
    bits: int


class ConstantWord(msgspec.Struct, frozen=True):
    """A word of a constant bank: see constants.py."""

    bank: int
    offset: int
    bits: int = WORD


Slot: TypeAlias = (
    RegisterPart | Literal | Sink | SpecialRegister | SymbolAddress | Argument | ConstantWord
)


class SlotTable:
    """The slots of a kernel, and what follows from them whatever the launch."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.names = [slot.name if isinstance(slot, RegisterPart) else "" for slot in slots]
        """Of the registers; of other slots none."""
        self.seen = np.array([_seen(slot) for slot in slots], np.uint16)
        """The bits of a mark (see marks.py) that reading a slot sees."""
        self.computed = [
            (index, slot)
            for index, slot in enumerate(slots)
            if isinstance(slot, SpecialRegister | SymbolAddress | Argument | ConstantWord)
        ]
        """Those whose values a launch decides."""
        self.groups: dict[tuple[type[Slot], int], list[Slot]] = {}
        """Slots whose arrays lie together: by kind and bits."""
        self.places = list(self._placed(slots))
        """(group, row in it) of each slot."""
        self.bits = [slot.bits for slot in slots]

    def _placed(self, slots: Sequence[Slot]) -> Iterator[tuple[int, int]]:
        """The place of each slot; those of one register have the same."""
        known: dict[str, tuple[int, int]] = {}
        numbers: dict[tuple[type[Slot], int], int] = {}
        for slot, name in zip(slots, self.names, strict=True):
            place = known.get(name)
            if place is None:
                kind = type(slot), slot.width if isinstance(slot, RegisterPart) else slot.bits
                own = self.groups.setdefault(kind, [])
                place = numbers.setdefault(kind, len(numbers)), len(own)
                own.append(slot)
                if name:
                    known[name] = place
            yield place

    @functools.cached_property
    def registers(self) -> Array:
        """The number of each slot's register, int32; -1 of other slots."""
        numbers: dict[str, int] = {}
        numbered = [numbers.setdefault(name, len(numbers)) if name else -1 for name in self.names]
        return np.array(numbered, np.int32)

    @property
    def register_count(self) -> int:
        return int(self.registers.max(initial=-1)) + 1

    @functools.cached_property
    def octets(self) -> Array:
        """Bytes of each slot, int32; 0 of predicates."""
        return np.array(self.bits, np.int32) // 8

    @functools.cached_property
    def slots_of(self) -> dict[str, list[int]]:
        """Those of each register."""
        slots: dict[str, list[int]] = {}
        for slot, name in enumerate(self.names):
            slots.setdefault(name, []).append(slot)
        return slots

    @functools.cached_property
    def rows(self) -> Array:
        """Rows in RegisterFile.words, by slot; -1 of what is not a whole register of 32 bits."""
        word = (
            list(self.groups).index((RegisterPart, WORD))
            if (RegisterPart, WORD) in self.groups
            else -1
        )
        rows = [row if group == word else -1 for group, row in self.places]
        return np.where(np.array(self.bits) == WORD, rows, -1)

    @functools.cached_property
    def literals(self) -> dict[int, Array]:
        """Values of literals, by their bits."""
        return {
            bits: np.array([slot.value for slot in own if isinstance(slot, Literal)], DTYPES[bits])
            for (kind, bits), own in self.groups.items()
            if kind is Literal
        }


def _seen(slot: Slot) -> int:
    if isinstance(slot, RegisterPart) and slot.width > slot.bits:
        return (1 << -(-slot.bits // 8)) - 1
    return 0xFFFF


class RegisterFile:
    """The arrays behind the slots of one kernel, for `warps` warps."""

    def __init__(self, table: SlotTable, warps: int) -> None:
        self._table = table
        self._groups = {
            (kind, bits): np.zeros((len(own), warps, WARP), DTYPES[bits])
            for (kind, bits), own in table.groups.items()
        }
        for bits, values in table.literals.items():
            self._groups[Literal, bits][...] = values[:, None, None]
        self.words = self._groups.get(
            (RegisterPart, WORD), np.zeros((0, warps, WARP), DTYPES[WORD])
        )
        """The registers of 32 bits, [registers, warps, 32]: those of a matrix are taken at once."""
        self.arrays = cast("list[Array]", _Arrays(table, list(self._groups.values())))
        """Of the slots, [warps, 32]."""

    def rows_of(self, slots: Sequence[int]) -> Array:
        """Where `words` has these slots; -1 for what is not a register of 32 bits."""
        rows: Array = self._table.rows[list(slots)]
        return rows

    def values(self) -> Iterator[Array]:
        """Of all registers, [registers, warps, 32] each."""
        return (array for (kind, _), array in self._groups.items() if kind is RegisterPart)

    def poison(self) -> None:
        for (kind, bits), array in self._groups.items():
            if kind is RegisterPart:
                array.fill(POISON[bits])

    @functools.cached_property
    def layout(self) -> Array:
        """Where compiled code finds the slots."""
        groups, rows = np.array(self._table.places, np.int64).reshape(-1, 2).T
        placed = [(array.ctypes.data, *array.strides) for array in self._groups.values()]
        first, row, warp, lane = np.array(placed, np.int64).reshape(-1, 4)[groups].T
        layout = np.empty(len(groups), SLOT)
        layout["data"], layout["row"], layout["lane"] = first + rows * row, warp, lane
        return layout

    def rows(self, warps: slice) -> list[Array]:
        """The slots of these warps, by index."""
        return cast("list[Array]", _Rows(self.arrays, warps))


class _Arrays(dict[int, Array]):
    """Stands for the list of the arrays of all slots, most of which are never asked for."""

    def __init__(self, table: SlotTable, groups: list[Array]) -> None:
        super().__init__()
        self._table = table
        self._groups = groups

    def __missing__(self, slot: int) -> Array:
        group, row = self._table.places[slot]
        array, bits = self._groups[group][row], self._table.bits[slot]
        if array.dtype != DTYPES[bits]:
            # A narrow read takes the low part: every width/bits-th element of the narrower view.
            narrow = array.view(DTYPES[bits])
            array = narrow[:, :: narrow.shape[1] // WARP]
        self[slot] = array
        return array


class _Rows(dict[int, Array]):
    """Stands for the list of all slots of a set of warps, most of which are never asked for."""

    def __init__(self, arrays: list[Array], warps: slice) -> None:
        super().__init__()
        self._arrays = arrays
        self._warps = warps

    def __missing__(self, slot: int) -> Array:
        rows = self[slot] = self._arrays[slot][self._warps]
        return rows
