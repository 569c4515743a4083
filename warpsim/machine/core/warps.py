"""Sets of warps: their places in the register file, their threads and CTAs."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import numpy as np

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.native_layout import SetLayout

ALL = 0xFFFF_FFFF
_BITS = np.arange(32, dtype=np.uint32)


class Warps:
    """Warps at equal distances in the register file."""

    slice: slice
    """Their places."""
    shared_base: Array
    """Arena offset of the CTA's shared memory, int64 [n, 1]."""
    shared: Array
    """What turns a shared-memory address into an arena offset, int64 [n, 1]."""
    local: Array
    """Arena offset of each thread's local memory, int64 [n, 32]."""

    def __init__(self, places: Array, ctas: Array) -> None:
        self.count = len(places)
        self.warps = places
        """Places in the register file, [n]."""
        self.ctas = ctas
        """Resident CTA of each warp, [n]."""
        step = int(places[1] - places[0]) if len(places) > 1 else 1
        self.native = SetLayout(int(places[0]), step, len(places))
        """The same for compiled code, at `address`."""
        self.address = ctypes.addressof(self.native)

    @functools.cached_property
    def of_lanes(self) -> Array:
        """The place of each lane's warp, [n, 32]."""
        return np.repeat(self.warps[:, None], 32, axis=1)

    @functools.cached_property
    def threads(self) -> Array:
        """The number of each lane's thread, int32 [n, 32]."""
        threads: Array = self.warps[:, None] * 32 + np.arange(32)
        return threads.astype(np.int32)

    @functools.cached_property
    def by_cta(self) -> Array | None:
        """The places of its warps by CTA, [CTAs, warps of each]; None if some have more than
        others."""
        ctas, counts = np.unique(self.ctas, return_counts=True)
        if (counts != counts[0]).any():
            return None
        order = np.argsort(self.ctas, kind="stable")
        return np.ascontiguousarray(self.warps[order].reshape(len(ctas), -1), np.int64)

    def active(self, m: Mask) -> Array:
        """The mask as bool [n, 32]."""
        return np.ones((self.count, 32), bool) if m is True else m

    def each_lane(self, m: Mask) -> list[tuple[int, int, int]]:
        """(row, place, lane) of every active lane."""
        lanes = []
        for row, place in enumerate(self.warps.tolist()):
            active = range(32) if m is True else np.flatnonzero(m[row]).tolist()
            lanes += [(row, place, lane) for lane in active]
        return lanes


def expand(masks: list[int]) -> Array:
    """Lane masks to bool [n, 32]."""
    return (np.array(masks, np.uint32)[:, None] >> _BITS & 1).astype(bool)


def pack(rows: Array) -> list[int]:
    """bool [n, 32] to lane masks."""
    return np.packbits(rows, axis=1, bitorder="little").view(np.uint32)[:, 0].tolist()


def lanes_of(mask: int) -> list[int]:
    return [lane for lane in range(32) if mask >> lane & 1]


def spell_warps(warps: Sequence[int]) -> str:
    """`warp 3`, `warps 0 to 3`, `warps 0, 2`: of warps in order."""
    first, last = warps[0], warps[-1]
    if len(warps) == 1:
        return f"warp {first}"
    if last - first + 1 == len(warps):
        return f"warps {first} to {last}"
    return f"warps {', '.join(map(str, warps))}"
