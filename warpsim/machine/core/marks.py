"""Marks of registers that hold what nobody wrote, which Python and compiled/marks.cpp share.

A mark is 16 bits of a lane of a register: a bit for each byte that nobody wrote, and a ninth if the
value was computed from such bytes.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.native_layout import ORIGIN, MarksLayout
from warpsim.machine.core.registers import SlotTable
from warpsim.machine.core.warps import Warps

NINTH = np.uint16(0x100)
COMPUTED = np.uint16(0x1FF)
MATRICES, LANE = "matrices", "lane"
LOADED = ("shared", "global", "local", "cluster shared", "param", MATRICES, LANE)
"""What is read, by the number that an origin has for it; the first ones as in forms.MEMORIES."""


class Origin(NamedTuple):
    """The load or shuffle that a mark comes from: its first lane that read what nobody wrote."""

    loaded: int
    """Of LOADED."""
    site: int
    place: int
    lane: int
    address: int
    """Of a shuffle, the lane that gives nothing."""

    def finding(self) -> str:
        """The name of what is reported once something depends on the mark."""
        return "shuffle-source" if LOADED[self.loaded] == LANE else "uninitialised-read"

    def sentence(self, who: str, place: str) -> str:
        """who: the thread; place: what array lies at the address, if that is known, and where."""
        if LOADED[self.loaded] == LANE:
            return (
                f"{who} takes a register of lane {self.address}, which does not take part in the "
                "shuffle"
            )
        if LOADED[self.loaded] == MATRICES:
            return "ldmatrix reads rows that were never written"
        where = f"{LOADED[self.loaded]} address {self.address:#x}{place and ', '}{place}"
        return f"load by {who} from {where}, which was never written"


class Marks:
    """Marks of all registers, [registers, warps, 32], by slot."""

    def __init__(self, table: SlotTable, warps: int) -> None:
        self._registers = table.registers.tolist()
        self._seen = table.seen
        self._marks: Array | None = None
        self.room = False
        """Whether there is any for marks: it takes half as much memory as the registers, and most
        kernels never need it."""
        self._shape = table.register_count, warps, 32
        self._marked = np.zeros(table.register_count, np.int64)
        """In how many warps each register has a mark."""
        self._origins = np.zeros(table.register_count, ORIGIN)
        self.expected = np.zeros(len(self._registers), np.int32)
        """By slot: how many of the loads that warps wait for fill it."""
        self.layout = MarksLayout(
            *(None, self._marked.ctypes.data, self._origins.ctypes.data),
            *(a.ctypes.data for a in (table.registers, self._seen, table.octets, self.expected)),
            *(warps, 0, 0),
        )
        self.address = ctypes.addressof(self.layout)

    def any(self) -> bool:
        return bool(self.layout.total)

    def known(self, slot: int) -> bool:
        """Whether a slot's register is marked in any warp."""
        register = self._registers[slot]
        return register >= 0 and bool(self._marked[register])

    def of(self, slot: int, warps: Warps) -> Array | None:
        """A set's marks of a slot's register, [n, 32]; None where there are none in any warp."""
        if self._marks is None or not self.known(slot):
            return None
        marks: Array = self._marks[self._registers[slot]][warps.slice]
        return marks

    def read(self, slot: int, warps: Warps) -> Array | None:
        """The same of the bytes that an instruction reads of it."""
        marks, seen = self.of(slot, warps), self._seen[slot]
        if marks is None or seen == 0xFFFF:
            return marks
        read = marks & seen
        return np.where(read != 0, read | marks & NINTH, 0).astype(np.uint16)

    def origin(self, slot: int) -> Origin:
        """Where the last mark of a slot's register comes from."""
        return Origin(*self._origins[self._registers[slot]].tolist())

    def first_of(self, loaded: int) -> Origin | None:
        """One of the loads of a kind of memory that registers were marked by; None: there was
        none."""
        rows = np.flatnonzero(self._origins["loaded"] == loaded)
        return Origin(*self._origins[rows[0]].tolist()) if len(rows) else None

    def put(
        self, slot: int, warps: Warps, lanes: Mask, mark: Array | np.uint16, origin: Origin
    ) -> None:
        """Marks a slot's register in these lanes; marks of 0 end there."""
        register = self._registers[slot]
        if register < 0:
            return
        if self._marks is None:
            self._marks = np.zeros(self._shape, np.uint16)
            self.layout.marks, self.room = self._marks.ctypes.data, True
        marks = self._marks[register][warps.slice]
        before = np.count_nonzero(marks.any(axis=1))
        np.copyto(marks, mark, where=lanes)
        more = np.count_nonzero(marks.any(axis=1)) - before
        self._marked[register] += more
        self.layout.total += more
        self._origins[register] = origin

    def expect(self, slots: Array, more: int) -> None:
        """Warps wait for one load more, or less, that fills these slots."""
        self.expected[slots] += more
        self.layout.expecting += more
