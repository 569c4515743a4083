"""What relaxed accesses to shared memory hand to each other, within a CTA: a word at a time."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, Mask, sparse_zeros
from warpsim.machine.core.clocks import Clocks
from warpsim.machine.core.warps import Warps
from warpsim.machine.memory.layout import SHARED_WINDOW, WINDOW, WINDOW_BITS

MOST = 256
"""Releases that are kept before those are let go that others have superseded."""


def are_shared(lanes: Array) -> bool:
    """Whether there are addresses, all of shared memory."""
    return bool(lanes.size) and bool(
        np.isin(lanes >> WINDOW_BITS, (0, SHARED_WINDOW >> WINDOW_BITS)).all()
    )


class _Released(NamedTuple):
    """What the warps of a set knew as they released."""

    time: int
    positions: dict[int, int]
    """Rows of `known`, by warp."""
    columns: Array | None
    """Of the clocks, [warps, columns], where others say nothing; None: `known` has all."""
    known: Array
    places: tuple[Array, Array]
    """In the table of times."""


class SharedFlags:
    """Atomics and volatile accesses of shared memory that release nothing: they order warps, as
    shared memory is in order, but not the lanes of one."""

    def __init__(self, clocks: Clocks, resident: int, extent: int) -> None:
        """resident: CTAs, whose warps lie that far apart; extent: bytes of shared memory of one."""
        self._clocks = clocks
        self._resident = resident
        self._extent = extent
        self._warps = clocks.warps // resident
        self._released: dict[int, _Released] = {}
        """By time."""
        self._most = MOST
        self._columns: dict[int, Array] = {}

    @functools.cached_property
    def _times(self) -> Array:
        """When each warp of the CTA last released at an address."""
        return sparse_zeros((self._resident * self._extent, self._warps), np.int64)

    def knows(self, warps: Warps, address: Array, m: Mask) -> bool:
        """Whether anybody has released at one of these addresses."""
        lanes = (address if m is True else address[m]).ravel()
        if not self._released or not are_shared(lanes):
            return False
        return bool(self._times[self._within(warps, address, m)[0]].any())

    def _within(self, warps: Warps, address: Array, m: Mask) -> tuple[Array, Array]:
        """(addresses in the table, row of the set) of the lanes."""
        at = (address.astype(np.int64) & WINDOW) + (warps.ctas * self._extent)[:, None]
        rows = np.broadcast_to(np.arange(warps.count)[:, None], at.shape)
        return (at.ravel(), rows.ravel()) if m is True else (at[m], rows[m])

    def release(self, warps: Warps, address: Array, m: Mask) -> None:
        clocks, places = self._clocks, warps.warps
        at, rows = self._within(warps, address, m)
        where = at, (places // self._resident)[rows]
        columns = None if clocks.wide[places].any() else self._columns_of(warps)
        known = clocks.seen[places] if columns is None else clocks.seen[places[:, None], columns]
        time = clocks.tick() - 1
        self._times[where] = time
        positions = {place: row for row, place in enumerate(places.tolist())}
        self._released[time] = _Released(time, positions, columns, known, where)
        if len(self._released) > self._most:
            self._let_go()

    def _columns_of(self, warps: Warps) -> Array:
        rows = []
        for cta in warps.ctas.tolist():
            if cta not in self._columns:
                own = np.arange(cta, self._clocks.warps, self._resident)
                self._columns[cta] = self._clocks.columns_within(own)
            rows.append(self._columns[cta])
        return np.stack(rows)

    def _let_go(self) -> None:
        """Of what later releases have superseded everywhere."""
        for released in list(self._released.values()):
            if not (self._times[released.places] == released.time).any():
                del self._released[released.time]
        self._most = max(MOST, 2 * len(self._released))

    def acquire(self, warps: Warps, address: Array, m: Mask) -> None:
        clocks, places = self._clocks, warps.warps
        at, rows = self._within(warps, address, m)
        times = np.zeros((warps.count, self._warps), np.int64)
        np.maximum.at(times, rows, self._times[at])
        others = warps.ctas[:, None] + np.arange(self._warps) * self._resident
        unknown = (clocks.seen[places[:, None], others] < times) & (others != places[:, None])
        unknown |= (clocks.seen[places[:, None], clocks.agents + others] < times) & (
            others != places[:, None]
        )
        for row, index in np.argwhere(unknown).tolist():
            place, other, time = int(places[row]), int(others[row, index]), int(times[row, index])
            if not clocks.knows(place, other, time):
                released = self._released[time]
                position = released.positions[other]
                columns = None if released.columns is None else released.columns[position]
                clocks.acquire_within(place, other, time, columns, released.known[position])
