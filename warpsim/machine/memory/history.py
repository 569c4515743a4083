"""The last accesses to the words of an arena: who wrote each last, and who has read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, sparse_zeros
from warpsim.machine.core.clocks import LONGEST, SITE_BITS, THREAD, THREAD_BITS, TIME

SITES = (1 << SITE_BITS) - 1 << THREAD_BITS
"""Of an epoch: the instruction."""
PAGE = 12
"""Units of a page, as a power of two: what nobody wrote to needs no looking at."""


class Beside(NamedTuple):
    """What a launch does that may still run: first byte and the one behind the last, [n, 2]."""

    reads: Array
    writes: Array
    updates: Array
    """By atomics and such."""


class History:
    """Epochs (see Clocks) of units of 1, 2 or 4 bytes.

    Readers are kept by column, the last of each. A read that takes the place of another warp's,
    which nothing orders before it, leaves that one in `peers` or `others`: those have the last such
    read by the same CTA and by another one. Where all order is by barriers, of a CTA or of the
    grid, a store that races with any reader then races with one that is kept: the last reader of
    another CTA than the writer's is in its column or in `others`, and if the writer is ordered
    after that one, the last reader of another warp of its CTA is in its column or in `peers`. What
    is ordered before a later read need not be kept: who is ordered after that one is after both.

    Epochs of earlier waves stay as they are, and are told from others by their time: to write them
    anew at the end of a wave, for all that was touched, took most of the time of a launch of many
    waves.
    """

    def __init__(
        self,
        size: int,
        unit: int,
        columns: int,
        residents: tuple[int, int],
        *,
        dense: bool = False,
    ) -> None:
        """residents: warps, and CTAs, that are resident at once; dense: whether most of the arena
        will be accessed."""
        units = size // unit
        self.unit = unit
        self.written = sparse_zeros((units,), np.int64, dense=dense)
        self.relaxed = sparse_zeros((units,), np.int64)
        """By whom each was last written in a way that may meet others of its kind: it counts if
        nobody has written since."""
        self.columns = columns
        """For the reads of warps."""
        self.peers, self.others = columns, columns + 1
        self.earlier, self.engines = columns + 2, columns + 3
        """For what CTAs of earlier waves have read and others have read since, and for the reads of
        engines."""
        self.polls = columns + 4
        """For volatile and relaxed reads, which may meet writes of their kind."""
        self.warps, self.ctas = residents
        self.launched = columns + 5
        """For the reads of a launch that may still run."""
        self.read = sparse_zeros((columns + 6, units), np.int64, dense=dense)
        """By column."""
        self.uses = np.zeros(columns + 7, np.int64)
        """How many columns have any reader, and which."""
        self.pages = np.zeros((units >> PAGE) + 1, bool)
        """Which were written."""
        self.first = 0
        """The first epoch of this wave."""
        self.before = 0
        """What those of earlier waves count as, but for their instruction."""
        self.beside = -1
        """The epoch of a launch that may still run, if there is one."""

    @property
    def has_beside(self) -> bool:
        """Whether another launch may still run."""
        return self.beside > 0

    def units_of(self, offsets: Array, size: int) -> Array:
        if size <= self.unit:
            return offsets // self.unit
        return (offsets // self.unit)[..., None] + np.arange(size // self.unit)

    @property
    def used(self) -> Array:
        """Columns with any reader."""
        return self.uses[1 : self.uses[0] + 1]

    def use(self, columns: Iterable[int]) -> None:
        """These columns will have readers."""
        used = self.used.tolist()
        for column in columns:
            if column not in used:
                used.append(column)
                self.uses[0], self.uses[len(used)] = len(used), column

    def begin_beside(self, beside: Beside, agent: int) -> None:
        """An agent, another launch, may do this at any time."""
        self.beside = LONGEST - 1 << TIME | agent << 5
        self.use([self.launched])
        for rows, changes in ((beside.reads, False), (beside.writes, True), (beside.updates, True)):
            for first, end in rows.tolist():
                units = slice(first // self.unit, -(-end // self.unit))
                if not changes:
                    self.read[self.launched, units] = self.beside
                    continue
                self.written[units] = self.beside
                self.pages[units.start >> PAGE : (units.stop - 1 >> PAGE) + 1] = True
        for first, end in beside.updates.tolist():
            units = slice(first // self.unit, -(-end // self.unit))
            self.relaxed[units] = self.written[units]

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
        """Epochs of the reads of units, by column first; ordinary: without polls.

        In the columns' order, not that of their first use: compiled code uses a column when a warp
        first stores, Python when it first reads, and a finding names the first of several readers.
        """
        columns = np.sort(self.used)
        columns = columns[columns != self.polls] if ordinary else columns
        return self.known(self.read[columns.reshape(-1, *[1] * units.ndim), units])

    def note(self, units: Array, epochs: Array) -> None:
        """Somebody writes to these."""
        self.pages[units >> PAGE] = True
        self.written[units] = epochs

    def note_read(
        self, column: int | Array, units: Array, epochs: Array, seen: Array, row: int | Array
    ) -> None:
        """Somebody reads these, to whom row `row` of `seen` is known."""
        before = self._put(column, units, epochs)
        now = self.read[column, units]
        epochs, row = np.broadcast_to(epochs, now.shape), np.broadcast_to(row, now.shape)
        hidden = _agents_differ(before, now) & (before >= self.first)
        if hidden.any():
            hidden &= seen[row, (before & THREAD) >> 5] < before >> TIME
            self._spill(units[hidden], before[hidden], now[hidden])
        hidden = _agents_differ(epochs, now)
        if hidden.any():
            self._spill(units[hidden], epochs[hidden], now[hidden])

    def _put(self, column: int | Array, units: Array, epochs: Array) -> Array:
        """Notes reads, and what an earlier wave has read there; what was noted there before."""
        before: Array = self.read[column, units]
        old = (before < self.first) & (before != 0)
        if old.any():
            np.maximum.at(self.read[self.earlier], units[old], before[old])
        self.read[column, units] = epochs
        return before

    def _spill(self, units: Array, epochs: Array, now: Array) -> None:
        """Keeps reads in whose place those of `now` are."""
        agents, others = ((e & THREAD) >> 5 for e in (epochs, now))
        near = (np.maximum(agents, others) < self.warps) & ((agents - others) % self.ctas == 0)
        for column, which in ((self.peers, near), (self.others, ~near)):
            if which.any():
                self.use([column])
                self._put(column, units[which], epochs[which])

    def untouched(self, first: int, end: int) -> bool:
        """Whether nobody wrote to the bytes [first, end)."""
        low, high = first // self.unit >> PAGE, (end - 1) // self.unit >> PAGE
        return not self.pages[low : high + 1].any()


def _agents_differ(epochs: Array, others: Array) -> Array:
    """Where accesses are of another warp or engine; 0: none."""
    result: Array = ((epochs ^ others) & THREAD) >> 5 != 0
    return result & (epochs != 0)
