"""Registers that wgmma operations in flight have for their accumulators."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from warpsim.arithmetic.matrices import fragments
from warpsim.machine.core.arrays import POISON, Array

WARPS = 4
"""Of a warpgroup."""
_NO_ROWS = np.empty(0, np.intp)


class AccumulatorSlots:
    """Registers that operations write in each of their warps: one object for the same slots."""

    def __init__(self, slots: tuple[int, ...], rows: Array) -> None:
        self.slots = frozenset(slots)
        self.rows = rows
        """Of RegisterFile.words."""


@functools.cache
def places_of(n: int, half: bool) -> tuple[Array, Array]:
    """(place in a warp's 16 x n, by row, of each value of D in its registers; the inverse).

    Values are ordered by register, lane, and where there are two in a register, half.
    """
    per = 2 if half else 1
    lane, part = fragments.LANE[:, None], np.arange(per)
    value = np.arange(n // 2 // per)[:, None, None] * per + part
    group, within = value // 4, value % 4
    row = lane // 4 + 8 * (within // 2)
    column = 8 * group + 2 * (lane % 4) + within % 2
    places = (row * n + column).ravel()
    return places, np.argsort(places)


class AccumulatorResult(NamedTuple):
    """What an operation has written to the accumulators of one of its warps."""

    matrix: Array
    """[64, n], of all four."""
    warp: int

    def registers(self) -> Array:
        """The warp's values by register, [registers, 32]."""
        in_matrix, _ = places_of(self.matrix.shape[1], self.matrix.dtype == np.uint16)
        own: Array = self.matrix.reshape(WARPS, -1)[self.warp]
        return own.take(in_matrix).view(np.uint32).reshape(-1, 32)


class Accumulators:
    """Accumulators of one warp in flight: by register, as RegisterFile.words has them."""

    def __init__(self, registers: int) -> None:
        self.values = np.zeros((registers, 32), np.uint32)
        """The engine's copy, until a wait writes it back, but for `results`."""
        self.results: dict[AccumulatorSlots, AccumulatorResult] = {}
        """No two of them with a register in common: the next operation mostly adds to one of these
        as it is."""
        self.held = np.zeros(registers, bool)
        self.taken: set[AccumulatorSlots] = set()
        """Those whose registers are all held; together they have every register that is."""
        self.written = np.zeros((registers, 32), np.uint32)
        """What waits have written back, and what fences have found."""
        self.given = np.zeros(registers, bool)
        """Of which registers."""

    def take(self, to: AccumulatorSlots, words: Array, place: int) -> None:
        """Takes the registers of an operation out of those of the warp at `place`."""
        if to in self.taken:
            return
        self.taken.add(to)
        new = to.rows[~self.held[to.rows]]
        if len(new):
            self.values[new] = words[new, place]
            self.held[new] = True
            words[new, place] = POISON[32]

    def note(self, rows: Array, words: Array, place: int) -> None:
        """A fence orders what the warp at `place` has written to these."""
        self.written[rows], self.given[rows] = words[rows, place], True

    def write(self, to: AccumulatorSlots, result: AccumulatorResult) -> None:
        if to not in self.results and not all(to.slots.isdisjoint(x.slots) for x in self.results):
            self.settle()
        self.results[to] = result

    def settle(self) -> None:
        """Puts all results into `values`."""
        for to, result in self.results.items():
            self.values[to.rows] = result.registers()
        self.results.clear()

    def unused(self, pending: set[AccumulatorSlots]) -> Array:
        """Rows that are held and that no pending operation writes."""
        if self.taken <= pending:
            return _NO_ROWS
        free = self.held.copy()
        for to in pending:
            free[to.rows] = False
        return np.flatnonzero(free)

    def give_back(
        self, rows: Array, pending: set[AccumulatorSlots], words: Array, place: int
    ) -> None:
        """Writes `unused` rows back to the registers of the warp at `place`."""
        self.settle()
        words[rows, place] = self.written[rows] = self.values[rows]
        self.held[rows], self.given[rows] = False, True
        self.taken &= pending
