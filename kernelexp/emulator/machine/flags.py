"""Order carried by memory itself: what a release at an address hands to an acquire there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.clocks import Clocks
    from kernelexp.emulator.machine.warps import WarpSet


class Flags:
    """Atomics, release stores, acquire loads and volatile accesses, by address.

    More generous than the memory model: an atomic of any order both releases and acquires.
    """

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.released: dict[tuple[int, int], Array] = {}

    def release(self, warps: WarpSet, address: Array, m: Any) -> None:
        for warp, key in self._keys(warps, address, m):
            row = self.clocks.release(warp)
            old = self.released.get(key)
            self.released[key] = row if old is None else np.maximum(old, row)

    def acquire(self, warps: WarpSet, address: Array, m: Any) -> None:
        for warp, key in self._keys(warps, address, m):
            row = self.released.get(key)
            if row is not None:
                self.clocks.acquire(warp, row)

    def _keys(self, warps: WarpSet, address: Array, m: Any) -> list[tuple[int, tuple[int, int]]]:
        found = []
        for row, warp in enumerate(warps.warps.tolist()):
            lanes = address[row] if m is True else address[row][m[row]]
            # Shared addresses of different clusters are different places.
            cluster = int(warps.ctas[row]) // warps.machine.cluster_size
            found += [(warp, (cluster if a >> 40 == 0 else -1, a)) for a in set(lanes.tolist())]
        return found
