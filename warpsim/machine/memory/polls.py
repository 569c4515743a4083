"""What warps poll, and who holds what they wait for: looked at only when nothing goes on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import Warps
from warpsim.machine.counts.access import AccessKind


class Polled(NamedTuple):
    """A word that a thread has polled."""

    space: str
    offset: int
    """In its arena."""
    size: int
    thread: int
    """Place * 32 + lane."""
    site: Site


class _Poll(NamedTuple):
    space: str
    warps: Warps
    offsets: Array
    m: Mask
    access: AccessKind


class Polls:
    """The last volatile, relaxed and atomic accesses of each set of warps, and the words that
    threads have taken by a swap."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], _Poll] = {}
        """By instruction and identity of the set; the latest come last."""
        self._holders: dict[tuple[str, int], tuple[int, Site]] = {}

    def note(self, space: str, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        key = access.site.number, id(warps)
        self._last.pop(key, None)
        self._last[key] = _Poll(space, warps, offsets, m, access)

    def swapped(self, space: str, warps: Warps, offsets: Array, site: Site, lanes: Array) -> None:
        """Lanes [n, 32] have changed a word by a swap or a compare and swap."""
        for row, lane in np.argwhere(lanes).tolist():
            thread = int(warps.warps[row]) * 32 + lane
            self._holders[space, int(offsets[row, lane])] = thread, site

    def holder(self, polled: Polled) -> tuple[int, Site] | None:
        """The thread that last changed a word by a swap, and where."""
        return self._holders.get((polled.space, polled.offset))

    def of(self, place: int, mask: int) -> Polled | None:
        """What lanes of a warp polled last."""
        for space, warps, offsets, m, access in reversed(self._last.values()):
            for row in np.flatnonzero(warps.warps == place).tolist():
                for lane in range(32):
                    if mask >> lane & 1 and (m is True or m[row, lane]):
                        offset = int(offsets[row, lane])
                        return Polled(space, offset, access.size, 32 * place + lane, access.site)
        return None
