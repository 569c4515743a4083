"""Volatile and relaxed loads of more than one store of their kind."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import SITE, THREAD_BITS
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.history import History


class TornLoads:
    """A load that is wider than the stores it meets may see one and not the other: accesses are
    morally strong only if they overlap completely (PTX memory consistency model)."""

    def __init__(self) -> None:
        self._widths = np.zeros(SITE + 2, np.uint8)
        """Bytes of an element of relaxed stores, by the number of their instruction + 1."""

    def stored(self, access: AccessKind) -> None:
        """An instruction stores so, or is an atomic."""
        self._widths[min(access.site.number, SITE) + 1] = access.element

    def of(self, history: History, units: Array, bad: Array, access: AccessKind) -> Array:
        """Which of the `bad` units, whose last write nothing orders before the load, were last
        written in a narrower way of its kind."""
        if access.element <= history.unit:
            return np.zeros(bad.shape, bool)
        written = history.written[units]
        widths = self._widths[written >> THREAD_BITS & SITE]
        narrower: Array = (widths != 0) & (widths < access.element)
        return bad & (written == history.relaxed[units]) & narrower
