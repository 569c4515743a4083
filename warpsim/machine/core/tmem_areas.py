"""Rectangles of tensor memory, and what was last done to each of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array

LANES, COLUMNS = 128, 512
GRANULE = 16
"""Lanes that every access takes together."""
GRANULES = LANES // GRANULE
_MOST = 64
"""Rectangles that are kept apart."""


class Area(NamedTuple):
    """Columns [first, end) of granules of lanes of a CTA."""

    cta: int
    granules: tuple[int, int, int]
    """First, end, step."""
    first: int
    end: int

    def overlaps(self, others: Iterable[Area]) -> bool:
        """Whether it shares anything with any of these, of the same CTA."""
        own = _mask(self.granules)
        return any(
            self.first < other.end and other.first < self.end and own & _mask(other.granules)
            for other in others
        )


def columns_of(cta: int, first: int, end: int) -> Area:
    """These columns of all lanes."""
    return Area(cta, (0, GRANULES, 1), first, end)


@functools.cache
def _mask(granules: tuple[int, int, int]) -> int:
    return sum(1 << granule for granule in range(*granules))


class _Rectangle(NamedTuple):
    """Columns [first, end) of the granules of a mask."""

    mask: int
    first: int
    end: int

    @property
    def size(self) -> int:
        return self.mask.bit_count() * (self.end - self.first)

    def common(self, other: _Rectangle) -> _Rectangle | None:
        mask = self.mask & other.mask
        first, end = max(self.first, other.first), min(self.end, other.end)
        return _Rectangle(mask, first, end) if mask and first < end else None


class Layers:
    """The last epoch (see Clocks) of every granule and column of a CTA's tensor memory; 0: none.

    Accesses are few and large: those of late are kept as rectangles, later ones over earlier ones,
    and only what cannot be read off them is written into an array.
    """

    def __init__(self) -> None:
        self._epochs: dict[_Rectangle, int] = {}
        """In the order in which they were put."""
        self._below: Array | None = None
        """int64 [granule, column]: what lies under them."""

    def put(self, area: Area, epoch: int) -> None:
        new = _Rectangle(_mask(area.granules), area.first, area.end)
        if self._epochs:
            last, before = next(reversed(self._epochs.items()))
            if before == epoch and last.mask == new.mask and last.end == new.first:
                new = _Rectangle(new.mask, last.first, new.end)
        others, first, end = ~new.mask, new.first, new.end
        hidden = [
            old for old in self._epochs if first <= old[1] and old[2] <= end and not old[0] & others
        ]
        for old in hidden:
            del self._epochs[old]
        if len(self._epochs) >= _MOST:
            self._flatten()
        self._epochs[new] = epoch

    def of(self, area: Area) -> list[int]:
        """The epochs in an area, in any order."""
        wanted = _Rectangle(_mask(area.granules), area.first, area.end)
        left, epochs = wanted.size, list[int]()
        seen: list[_Rectangle] = []
        mask, first, end = wanted
        for rectangle in reversed(self._epochs):
            if rectangle[2] <= first or end <= rectangle[1] or not mask & rectangle[0]:
                continue
            if (
                not seen
                and rectangle[1] <= first
                and end <= rectangle[2]
                and not mask & ~rectangle[0]
            ):
                return [self._epochs[rectangle]]
            part = rectangle.common(wanted)
            if part is None:
                continue
            covered = [common for above in seen if (common := part.common(above))]
            if part in covered:
                continue
            if covered:  # it shows in part
                return distinct(self.array(area))
            epochs.append(self._epochs[rectangle])
            left -= part.size
            if not left:
                return epochs
            seen.append(part)
        if self._below is not None and self._below.any():
            return distinct(self.array(area))
        return [*epochs, 0]

    def array(self, area: Area) -> Array:
        """The epochs of an area, [granules, columns]."""
        return self._flatten()[slice(*area.granules), area.first : area.end]

    def _flatten(self) -> Array:
        if self._below is None:
            self._below = np.zeros((GRANULES, COLUMNS), np.int64)
        for (mask, first, end), epoch in self._epochs.items():
            self._below[[g for g in range(GRANULES) if mask >> g & 1], first:end] = epoch
        self._epochs.clear()
        return self._below


def distinct(epochs: Array) -> list[int]:
    values: list[int] = np.unique(epochs).tolist()
    return values
