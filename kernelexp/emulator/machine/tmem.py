"""Tensor memory: 128 lanes of 512 columns of 32 bits a CTA, allocated in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelexp.emulator.findings import Fatal
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import POISON, Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine

LANES, COLUMNS = 128, 512


class TensorMemory:
    """Tensor memory of all resident CTAs."""

    def __init__(self, machine: Machine, ctas: int) -> None:
        self.machine = machine
        self._ctas = ctas
        self.allocated: dict[int, dict[int, int]] = {}
        """Columns of each allocation by its first column, by CTA."""
        self.relinquished: set[int] = set()
        self._data: Array | None = None
        self._written: Array | None = None

    @property
    def data(self) -> Array:
        """uint32 [CTA, lane, column], poison where nothing was written."""
        if self._data is None:
            self._data = np.full((self._ctas, LANES, COLUMNS), POISON[32], np.uint32)
        return self._data

    @property
    def written(self) -> Array:
        if self._written is None:
            self._written = np.zeros((self._ctas, LANES, COLUMNS), bool)
        return self._written

    def free_at(self, cta: int, columns: int) -> int | None:
        """First column of a free, aligned run of `columns`; None if there is none."""
        taken = np.zeros(COLUMNS, bool)
        for first, count in self.allocated.get(cta, {}).items():
            taken[first : first + count] = True
        for first in range(0, COLUMNS - columns + 1, max(32, columns)):
            if not taken[first : first + columns].any():
                return first
        return None

    def allocate(self, cta: int, columns: int) -> int | None:
        first = self.free_at(cta, columns)
        if first is not None:
            self.allocated.setdefault(cta, {})[first] = columns
            # What a previous owner left must not be relied on.
            self.data[cta, :, first : first + columns] = POISON[32]
            self.written[cta, :, first : first + columns] = False
        return first

    def free(self, cta: int, first: int, columns: int, ins: Instruction, place: int) -> None:
        held = self.allocated.get(cta, {})
        if held.get(first) != columns:
            self.machine.found(
                "tmem-allocation",
                f"tcgen05.dealloc of {columns} columns from {first}: it holds {held or 'nothing'}.",
                ins,
                place,
            )
            return
        del held[first]

    def check(self, cta: int, first: int, columns: int, ins: Instruction, place: int) -> None:
        """Columns [first, first + columns) must lie in one allocation of the CTA."""
        for start, count in self.allocated.get(cta, {}).items():
            if start <= first and first + columns <= start + count:
                return
        held = self.allocated.get(cta, {})
        self.machine.found(
            "tmem-bounds",
            f"columns {first} to {first + columns - 1} lie outside what CTA "
            f"{self.machine.ctas[cta].number} allocated ({held or 'nothing'}).",
            ins,
            place,
        )
        if first + columns > COLUMNS:
            raise Fatal
