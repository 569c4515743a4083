"""Which lanes of a warp touch which banks or sectors, of each instruction's dearest access."""

from __future__ import annotations

import msgspec
import numpy as np

from warpsim.lineinfo import Source
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import (
    BANKS,
    TAG_BYTES,
    AccessKind,
    global_cost,
    lanes_per_phase,
    shared_cost,
)

Row = tuple[int | None, ...]
"""32 words of 4 bytes: the first lane that touches each, if one does."""


class AccessPattern(msgspec.Struct, frozen=True, kw_only=True):
    """How one warp accessed memory: the access of an instruction that cost most."""

    number: int
    """Of the instruction in its program."""
    opcode: str
    source: Source | None
    space: str
    """shared or global."""
    store: bool
    bytes_per_lane: int
    addresses: tuple[int | None, ...]
    """Of each lane; None where it took no part. Of shared memory those in the CTA's."""
    cost: int
    """Wavefronts of shared memory; sectors of global memory."""
    ideal: int
    rows: tuple[Row, ...]
    """Shared: a wavefront each, columns are banks. Global: a line of 128 bytes each, columns are
    its words, eight to a sector."""
    phases: tuple[int, ...]
    """Shared: how many rows each phase of the access has."""


class Patterns:
    """Collects the dearest access of each instruction while a launch is executed."""

    def __init__(self) -> None:
        self.found: dict[int, AccessPattern] = {}
        self._seen: dict[int, float] = {}

    def note(self, space: str, addresses: Array, access: AccessKind, m: Mask, spent: int) -> None:
        """Warps that access memory at once; `spent` is what all of them cost together."""
        number = access.site.number
        mean = spent / len(addresses)
        if mean <= self._seen.get(number, -1.0):
            return
        self._seen[number] = mean
        for row in range(len(addresses)):
            mask = np.ones(32, bool) if m is True else np.broadcast_to(m, addresses.shape)[row]
            pattern = _pattern(space, addresses[row], access, mask)
            known = self.found.get(number)
            if pattern and (known is None or pattern.cost > known.cost):
                self.found[number] = pattern


def _pattern(space: str, addresses: Array, access: AccessKind, mask: Array) -> AccessPattern | None:
    if not mask.any():
        return None
    own, on = addresses[None, :], mask[None, :]
    if space == "shared":
        cost = shared_cost(own, access.size, on, pairs=_pairs(access))
        phases = shared_rows(addresses, access, mask)
        spent, ideal = cost.wavefronts, cost.ideal_wavefronts
    else:
        cost = global_cost(own, access.size, on)
        phases = [_lines(addresses, access.size, mask)]
        spent, ideal = cost.sectors, cost.ideal_sectors
    return AccessPattern(
        number=access.site.number,
        opcode=access.site.opcode,
        source=access.site.source,
        space=space,
        store=access.store,
        bytes_per_lane=access.size,
        addresses=tuple(
            int(a) if use else None for a, use in zip(addresses, mask.tolist(), strict=True)
        ),
        cost=spent,
        ideal=ideal,
        rows=tuple(row for phase in phases for row in phase),
        phases=tuple(map(len, phases)),
    )


def _pairs(access: AccessKind) -> bool:
    return access.pairs and not access.store


def shared_rows(addresses: Array, access: AccessKind, mask: Array) -> list[list[Row]]:
    """By phase, its wavefronts: the n-th has of each bank the n-th word that is asked of it."""
    lanes = np.flatnonzero(mask)
    size = lanes_per_phase(addresses[lanes], lanes, access.size, pairs=_pairs(access))
    return [
        _wavefronts(
            addresses, [lane for lane in lanes.tolist() if lane // size == phase], access.size
        )
        for phase in np.unique(lanes // size).tolist()
    ]


def _wavefronts(addresses: Array, lanes: list[int], size: int) -> list[Row]:
    banks: list[dict[int, int]] = [{} for _ in range(BANKS)]
    for lane in lanes:
        for word in range(max(1, size // 4)):
            place = (int(addresses[lane]) >> 2) + word
            banks[place % BANKS].setdefault(place, lane)
    columns = [[own[word] for word in sorted(own)] for own in banks]
    depth = max(map(len, columns))
    return [tuple(c[row] if row < len(c) else None for c in columns) for row in range(depth)]


def _lines(addresses: Array, size: int, mask: Array) -> list[Row]:
    words = TAG_BYTES // 4
    touched: dict[int, dict[int, int]] = {}
    for lane in np.flatnonzero(mask).tolist():
        first, last = int(addresses[lane]) >> 2, (int(addresses[lane]) + size - 1) >> 2
        for place in range(first, last + 1):
            touched.setdefault(place // words, {}).setdefault(place % words, lane)
    return [tuple(touched[line].get(word) for word in range(words)) for line in sorted(touched)]
