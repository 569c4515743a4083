"""The last accesses to the words of an arena: who wrote each last, and who has read it."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array, sparse_zeros
from warpsim.machine.core.clocks import SITE_BITS, THREAD_BITS, TIME

SITES = (1 << SITE_BITS) - 1 << THREAD_BITS
"""Of an epoch: the instruction."""
PAGE = 12
"""Units of a page, as a power of two: what nobody wrote to needs no looking at."""


class History:
    """Epochs (see Clocks) of units of 1, 2 or 4 bytes.

    Readers are kept by column: readers in one column hide each other's earlier reads. Epochs of
    earlier waves stay as they are, and are told from others by their time: to write them anew at
    the end of a wave, for all that was touched, took most of the time of a launch of many waves.
    """

    def __init__(self, size: int, unit: int, columns: int) -> None:
        units = size // unit
        self.unit = unit
        self.written = sparse_zeros((units,), np.int64)
        self.relaxed = sparse_zeros((units,), np.int64)
        """By whom each was last written in a way that may meet others of its kind: it counts if
        nobody has written since."""
        self.columns = columns
        """For the reads of warps."""
        self.earlier, self.engines = columns, columns + 1
        """For what CTAs of earlier waves have read and others have read since, and for the reads of
        engines."""
        self.polls = columns + 2
        """For volatile and relaxed reads, which may meet writes of their kind."""
        self.read = sparse_zeros((columns + 3, units), np.int64)
        """By column."""
        self.used = np.zeros(0, np.int64)
        """Columns with any reader."""
        self._known: set[int] = set()
        """The same."""
        self.pages = np.zeros((units >> PAGE) + 1, bool)
        """Which were written."""
        self.first = 0
        """The first epoch of this wave."""
        self.before = 0
        """What those of earlier waves count as, but for their instruction."""

    def units_of(self, offsets: Array, size: int) -> Array:
        if size <= self.unit:
            return offsets // self.unit
        return (offsets // self.unit)[..., None] + np.arange(size // self.unit)

    def use(self, columns: list[int]) -> None:
        """These columns will have readers."""
        if not self._known.issuperset(columns):
            self._known.update(columns)
            self.used = np.array(sorted(self._known), np.int64)

    def begin_wave(self, now: int, earlier: int) -> None:
        """Whatever was done so far, CTAs of an earlier wave did, which are an agent."""
        self.first, self.before = now << TIME, 1 << TIME | earlier << 5
        self.use([self.earlier])

    def known(self, epochs: Array) -> Array:
        """Epochs, with those of earlier waves as their agent's."""
        if not self.first:
            return epochs
        old = (epochs < self.first) & (epochs != 0)
        return np.where(old, self.before | epochs & SITES, epochs) if old.any() else epochs

    def writers(self, units: Array) -> Array:
        """Epochs of the last writes to units."""
        return self.known(self.written[units])

    def readers(self, units: Array, *, ordinary: bool = False) -> Array:
        """Epochs of the reads of units, by column first; ordinary: without polls."""
        columns = self.used[self.used != self.polls] if ordinary else self.used
        return self.known(self.read[columns.reshape(-1, *[1] * units.ndim), units])

    def note(self, units: Array, epochs: Array) -> None:
        """Somebody writes to these."""
        self.pages[units >> PAGE] = True
        self.written[units] = epochs

    def note_read(self, column: int | Array, units: Array, epochs: Array) -> None:
        """Somebody reads these; what an earlier wave has read there stays known."""
        if self.first:
            self._keep(column, units)
        self.read[column, units] = epochs

    def _keep(self, column: int | Array, units: Array) -> None:
        before = self.read[column, units]
        old = (before < self.first) & (before != 0)
        if old.any():
            np.maximum.at(self.read[self.earlier], units[old], before[old])

    def untouched(self, first: int, end: int) -> bool:
        """Whether nobody wrote to the bytes [first, end)."""
        low, high = first // self.unit >> PAGE, (end - 1) // self.unit >> PAGE
        return not self.pages[low : high + 1].any()
