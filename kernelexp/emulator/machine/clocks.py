"""Who has seen whose accesses to shared memory: happens-before, word by word.

Each warp, the copy engine and the tensor core are agents; the copy engine once more for what bulk
stores read, of which only cp.async.bulk.wait_group tells. `seen[w, a]` is the time up to which
agent a's accesses are ordered before what warp w does now; barriers, mbarriers and atomics carry
such rows from one warp to the next. A word remembers its last writer and its last reader: an access
that is not ordered after them is a race. On the diagonal stands a warp's own last meeting point, so
that lanes of one warp that exchange data without __syncwarp() are found too.
"""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.arrays import Array


class Clocks:
    """Last accesses of the units (1, 2 or 4 bytes) of a shared-memory arena."""

    def __init__(self, size: int, unit: int, warps: int) -> None:
        self.unit = unit
        units = size // unit
        self.warps = warps
        self.copy, self.tensor, self.store = warps, warps + 1, warps + 2
        self.write_time = np.zeros(units, np.int64)
        self.write_thread = np.zeros(units, np.int32)
        self.read_time = np.zeros(units, np.int64)
        self.read_thread = np.zeros(units, np.int32)
        self.seen = np.zeros((warps, warps + 3), np.int64)
        self.fence_time = np.zeros(warps * 32, np.int64)
        self.fence_seen = np.zeros((warps, warps + 3), np.int64)
        self.now = 1

    def tick(self) -> int:
        self.now += 1
        return self.now

    # Synchronisation

    def converge(self, warp: int) -> None:
        """The lanes of a warp have met: each has seen what the others did."""
        self.seen[warp, warp] = self.tick()

    def release(self, warp: int) -> Array:
        """What somebody learns who acquires what this warp now releases."""
        row: Array = self.seen[warp].copy()
        row[warp] = self.tick()
        return row

    def acquire(self, warp: int, row: Array) -> None:
        np.maximum(self.seen[warp], row, out=self.seen[warp])

    def engines_only(self, row: Array) -> Array:
        """What relaxed operations hand over: asynchronous effects, which order themselves."""
        engines = row.copy()
        engines[: self.warps] = 0
        return engines

    def fence_async(self, warps: Array, mask: Array | bool) -> None:
        """fence.proxy.async by the lanes of `mask`."""
        now = self.tick()
        times = self.fence_time.reshape(-1, 32)
        for position, warp in enumerate(warps):
            lanes = slice(None) if mask is True else mask[position]  # type: ignore[index]
            times[warp, lanes] = now
            self.fence_seen[warp] = self.seen[warp]

    # Accesses of warps

    def units_of(self, offsets: Array, size: int) -> Array:
        if size <= self.unit:
            return offsets // self.unit
        return (offsets // self.unit)[..., None] + np.arange(size // self.unit)

    def unordered(self, warps: Array, threads: Array, time: Array, thread: Array) -> Array:
        """Which earlier accesses (time, thread) are not ordered before these threads' accesses."""
        return (self.seen[warps, thread >> 5] < time) & (thread != threads)

    # Accesses of an asynchronous engine: `row` is what the issuing thread had seen

    def unseen(self, row: Array, issuer: int, time: Array, thread: Array) -> Array:
        return (row[thread >> 5] < time) & (thread != issuer)

    def unfenced(self, fence_row: Array, time: Array, thread: Array) -> Array:
        """Which words an ordinary store wrote with no proxy fence on the way to the engine."""
        by_warp = thread < self.warps * 32
        own = self.fence_time[np.where(by_warp, thread, 0)] >= time
        return by_warp & (time > 0) & ~own & (fence_row[thread >> 5] < time)
