"""Order carried by memory itself: what a release at an address hands to an acquire there."""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.clocks import Clocks
from kernelexp.emulator.machine.layout import WINDOW_BITS
from kernelexp.emulator.machine.warps import Warps


class Flags:
    """Atomics, release stores, acquire loads and volatile accesses, by address.

    More generous than the memory model: an atomic of any order both releases and acquires.
    """

    def __init__(self, clocks: Clocks, cluster_size: int) -> None:
        self.clocks = clocks
        self.cluster_size = cluster_size
        self.released: dict[tuple[int, int], Array] = {}

    def release(self, warps: Warps, address: Array, m: Mask) -> None:
        for warp, key in self._keys(warps, address, m):
            row = self.clocks.release(warp)
            old = self.released.get(key)
            self.released[key] = row if old is None else np.maximum(old, row)

    def acquire(self, warps: Warps, address: Array, m: Mask) -> None:
        for warp, key in self._keys(warps, address, m):
            row = self.released.get(key)
            if row is not None:
                self.clocks.acquire(warp, row)

    def _keys(self, warps: Warps, address: Array, m: Mask) -> list[tuple[int, tuple[int, int]]]:
        keys = []
        for row, warp in enumerate(warps.warps.tolist()):
            lanes = address[row] if m is True else address[row][m[row]]
            # Shared addresses of different clusters are different places.
            cluster = int(warps.ctas[row]) // self.cluster_size
            for at in set(lanes.tolist()):
                keys.append((warp, (-1 if at >> WINDOW_BITS else cluster, at)))
        return keys
