"""Accesses that stand for the last store to a word: whoever is ordered after one is after it.

Stores of a value that another store, which nothing orders, has put there already: whoever reads the
word sees that value, whichever store came first. A store of another value must be ordered after all
of them. And loads that have observed the store.
"""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import Clocks

_NONE = np.zeros(0, np.int64)


class _Repeated:
    """The store that changed a unit, and the accesses that stand for it."""

    __slots__ = ("changed", "epochs", "known")

    def __init__(self, changed: int) -> None:
        self.changed = changed
        self.epochs: set[int] = set()
        self.known = _NONE

    def array(self) -> Array:
        if len(self.known) != len(self.epochs):
            self.known = np.fromiter(self.epochs, np.int64, len(self.epochs))
        return self.known


class Repeats:
    """Epochs (see Clocks) of such stores, by unit of memory."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._noted: Array = np.zeros(0, bool)
        """Which units have any; empty while none has."""
        self.epochs: dict[int, _Repeated] = {}

    def __bool__(self) -> bool:
        return bool(self.epochs)

    def note_all(self, units: Array, changed: Array, epochs: Array) -> None:
        """Accesses at `epochs` stand for the stores at `changed`."""
        for unit, at, epoch in zip(units.tolist(), changed.tolist(), epochs.tolist(), strict=True):
            self._note(unit, at, epoch)

    def _note(self, unit: int, changed: int, epoch: int) -> None:
        if not len(self._noted):
            self._noted = np.zeros(self._units, bool)
        self._noted[unit] = True
        repeated = self.epochs.get(unit)
        if repeated is None or repeated.changed != changed:
            repeated = self.epochs[unit] = _Repeated(changed)
        repeated.epochs.add(epoch)

    def _of(self, unit: int, changed: int) -> Array:
        repeated = self.epochs.get(unit)
        return repeated.array() if repeated and repeated.changed == changed else _NONE

    def seen(self, clocks: Clocks, units: Array, warp: Array, thread: Array, last: Array) -> Array:
        """Which accesses one of them is ordered before."""
        return self._compare(clocks, units, warp, thread, last, every=False)

    def unordered(
        self, clocks: Clocks, units: Array, warp: Array, thread: Array, last: Array
    ) -> Array:
        """Which accesses one of them is not ordered before."""
        return self._compare(clocks, units, warp, thread, last, every=True)

    def _compare(
        self, clocks: Clocks, units: Array, warp: Array, thread: Array, last: Array, every: bool
    ) -> Array:
        result = np.zeros(units.shape, bool)
        if not self.epochs:
            return result
        warp, thread, last = (np.broadcast_to(x, units.shape) for x in (warp, thread, last))
        for at in np.argwhere(self._noted[units]):
            place = tuple(at)
            epochs = self._of(int(units[place]), int(last[place]))
            if len(epochs):
                bad = clocks.unordered(warp[place], thread[place], epochs)
                result[place] = bad.any() if every else not np.all(bad)
        return result
