"""The last accesses to the words of an arena: who wrote each last, and who has read it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpsim.machine.core.arrays import Array, sparse_zeros
from warpsim.machine.core.clocks import SITE_BITS, THREAD_BITS

SITES = (1 << SITE_BITS) - 1 << THREAD_BITS
"""Of an epoch: the instruction."""
PAGE = 12
"""Units of a page, as a power of two: what nobody touched needs no looking at."""
WROTE, READ, EARLIER = 1, 2, 4
"""Bits of a page: written and read in this wave, written in one before."""


class History:
    """Epochs (see Clocks) of units of 1, 2 or 4 bytes.

    Readers are kept by column: readers in one column hide each other's earlier reads.
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
        """For those of CTAs of earlier waves, and of engines."""
        self.polls = columns + 2
        """For volatile and relaxed reads, which may meet writes of their kind."""
        self.read = sparse_zeros((columns + 3, units), np.int64)
        """By column."""
        self.used = np.zeros(0, np.int64)
        """Columns with any reader."""
        self.pages = np.zeros((units >> PAGE) + 1, np.uint8)
        """What was done to each."""

    def units_of(self, offsets: Array, size: int) -> Array:
        if size <= self.unit:
            return offsets // self.unit
        return (offsets // self.unit)[..., None] + np.arange(size // self.unit)

    def use(self, columns: list[int]) -> None:
        """These columns will have readers."""
        known = self.used.tolist()
        if any(column not in known for column in columns):
            self.used = np.array(sorted({*known, *columns}), np.int64)

    def readers(self, units: Array, *, ordinary: bool = False) -> Array:
        """Epochs of the reads of units, by column first; ordinary: without polls."""
        columns = self.used[self.used != self.polls] if ordinary else self.used
        return self.read[columns.reshape(-1, *[1] * units.ndim), units]

    def end_wave(self, epoch: int) -> None:
        """What was written and read so far was written and read at `epoch`.

        It is the same one for all waves: what earlier ones touched needs no looking at again.
        """
        for place in self._touched(WROTE):
            units, relaxed = self.written[place], self.relaxed[place]
            free = (relaxed == units) & (units != 0)
            relaxed[...] = np.where(free, epoch | units & SITES, 0)
            units[units != 0] = epoch | units[units != 0] & SITES
        for place in self._touched(READ):
            reads = self.read[:, place]
            ordinary = reads[self.used[self.used != self.polls]].max(axis=0, initial=0)
            polls = reads[self.polls].copy()
            reads[self.used] = 0
            for column, last in ((self.earlier, ordinary), (self.polls, polls)):
                reads[column] = np.where(last != 0, epoch | last & SITES, 0)
        self.used = np.array([self.earlier, self.polls])
        written = self.pages & WROTE != 0
        self.pages &= EARLIER
        self.pages[written] = EARLIER

    def _touched(self, how: int) -> Iterator[slice]:
        """The units of each run of pages that were."""
        pages = np.flatnonzero(self.pages & how)
        for run in np.split(pages, np.flatnonzero(np.diff(pages) > 1) + 1) if len(pages) else []:
            yield slice(int(run[0]) << PAGE, (int(run[-1]) + 1) << PAGE)

    def note(self, units: Array) -> None:
        """Somebody writes to these."""
        self.pages[units >> PAGE] |= WROTE

    def note_read(self, units: Array) -> None:
        """Somebody reads these."""
        self.pages[units >> PAGE] |= READ

    def untouched(self, first: int, end: int) -> bool:
        """Whether nobody wrote to the bytes [first, end)."""
        low, high = first // self.unit >> PAGE, (end - 1) // self.unit >> PAGE
        return not (self.pages[low : high + 1] & (WROTE | EARLIER)).any()
