"""Stores of a value that another store, which nothing orders, has put there already.

Whoever reads the word sees that value, whichever store came first: it is enough that one of them is
ordered before the read. A store of another value must be ordered after all of them.
"""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import Clocks


class Repeats:
    """Epochs (see Clocks) of such stores, by unit of memory."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._noted: Array = np.zeros(0, bool)
        """Which units have any; empty while none has."""
        self._epochs: dict[int, tuple[int, set[int]]] = {}
        """(epoch of the store that changed the value, epochs of those that repeated it)."""

    def __bool__(self) -> bool:
        return bool(self._epochs)

    def note(self, unit: int, changed: int, epoch: int) -> None:
        """A store at `epoch` repeats the value that the one at `changed` has stored."""
        if not len(self._noted):
            self._noted = np.zeros(self._units, bool)
        self._noted[unit] = True
        first, epochs = self._epochs.get(unit, (0, set()))
        self._epochs[unit] = (changed, ({epoch} if first != changed else epochs | {epoch}))

    def _of(self, unit: int, changed: int) -> Array:
        first, epochs = self._epochs.get(unit, (0, set()))
        return np.array(sorted(epochs) if first == changed else [], np.int64)

    def seen(self, clocks: Clocks, units: Array, warp: Array, thread: Array, last: Array) -> Array:
        """Which accesses one of the repeating stores is ordered before."""
        return self._compare(clocks, units, warp, thread, last, every=False)

    def unordered(
        self, clocks: Clocks, units: Array, warp: Array, thread: Array, last: Array
    ) -> Array:
        """Which accesses one of the repeating stores is not ordered before."""
        return self._compare(clocks, units, warp, thread, last, every=True)

    def _compare(
        self, clocks: Clocks, units: Array, warp: Array, thread: Array, last: Array, every: bool
    ) -> Array:
        result = np.zeros(units.shape, bool)
        if not self._epochs:
            return result
        warp, thread, last = (np.broadcast_to(x, units.shape) for x in (warp, thread, last))
        for at in np.argwhere(self._noted[units]):
            place = tuple(at)
            epochs = self._of(int(units[place]), int(last[place]))
            if len(epochs):
                bad = clocks.unordered(warp[place], thread[place], epochs)
                result[place] = bad.any() if every else not np.all(bad)
        return result
