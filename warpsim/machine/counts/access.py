"""What one memory instruction of a warp costs: wavefronts, sectors, tags, from its addresses.

Rules (warpsim/docs/counters.md, "How it counts"; an H200's counters bear them out in 230 patterns
of shared accesses): a shared-memory bank is 4 bytes wide, there are 32. Lanes pass in phases of 32,
16 or 8 for accesses of up to 4, 8 and 16 bytes, loads in half as many where all active lanes n and
n^1, or n and n^2, have the same address; a phase takes as many wavefronts as the busiest bank has
distinct words. Each wavefront of a phase beyond its first is a bank conflict. A sector is 32
aligned bytes, a tag 128. What LDGSTS costs is in copy_cost.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.site import Site

BANKS = 32
SECTOR_BYTES = 32
TAG_BYTES = 128
ALL_LANES = np.arange(32)


@dataclass(slots=True)
class AccessKind:
    """A memory instruction: what its accesses are checked and counted under."""

    site: Site
    element: int
    """Bytes."""
    elements: int
    store: bool
    relaxed: bool = False
    """volatile, relaxed, atomic: an access that is no data race with others of its kind."""
    narrow: bool = False
    """One of those, of the scope of a CTA: it may meet others of its own CTA only."""
    polls: bool = False
    """An ordinary load past the first-level cache: it may poll what others store as a flag."""
    pairs: bool = True
    """Whether lanes with the same address may share a phase in a load: not in ldmatrix."""
    coherent: bool = True
    """Not a load that may come from a cache which does not see writes (ld.global.nc)."""
    used: int | None = None
    """Of a load: a bit for each byte that is used; None: any may be."""
    counted: bool = True
    """Not the halves of a cp.async, which is counted as a whole."""
    swapped: bool = False
    """Of a compare-and-swap, and of loads of its very address: what nobody wrote of a word that is
    written in part is compared with itself, and put back as it is. An atomic of two bytes is made
    so, of a word of four."""
    size: int = field(init=False)
    """Bytes of a lane's access."""

    def __post_init__(self) -> None:
        self.size = self.element * self.elements


class AccessCost(NamedTuple):
    """Sums over the warps of one executed instruction."""

    wavefronts: int
    ideal_wavefronts: int
    sectors: int
    ideal_sectors: int
    tags: int
    conflicts: int = 0
    """Of banks of shared memory."""
    l1_sectors: int = 0
    """Sectors as the L1 counts them: those of a LDGSTS that bypasses it are others."""
    requests: int = 0
    """Warps with an active lane, of an access to global memory."""


NOTHING = AccessCost(0, 0, 0, 0, 0)

_stored: dict[tuple[int, bytes, bytes], AccessCost] = {}
_loaded: dict[tuple[int, bytes, bytes], AccessCost] = {}
_global: dict[tuple[int, bytes, bytes], AccessCost] = {}


def shared_cost(
    addresses: Array, bytes_per_lane: int, mask: Array | None, *, pairs: bool = False
) -> AccessCost:
    """Cost of a shared access; `addresses` int64 [warps, 32], `mask` bool or None for all lanes.

    pairs: a load, in which lanes with the same address may share a phase.
    """
    if pairs and bytes_per_lane > 4:
        return _cached(_loaded, _loaded_row, addresses, bytes_per_lane, mask)
    return _cached(_stored, _stored_row, addresses, bytes_per_lane, mask)


def global_cost(addresses: Array, bytes_per_lane: int, mask: Array | None) -> AccessCost:
    """Cost of a global access; arguments as for shared_cost."""
    return _cached(_global, _global_row, addresses, bytes_per_lane, mask)


def _cached(
    memo: dict[tuple[int, bytes, bytes], AccessCost],
    row_cost: Callable[[Array, Array, int], AccessCost],
    addresses: Array,
    width: int,
    mask: Array | None,
) -> AccessCost:
    # Costs don't change when a warp's addresses all move by a multiple of 128 bytes, so that the
    # few patterns of a kernel are worked out once and looked up for every later execution.
    if mask is None:
        first = addresses[:, :1]
    else:
        first = np.where(mask, addresses, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        addresses = np.where(mask, addresses, first)
    relative = addresses - (first & ~np.int64(TAG_BYTES - 1))
    key = (width, relative.tobytes(), b"" if mask is None else mask.tobytes())
    cost = memo.get(key)
    if cost is None:
        active = np.ones(relative.shape, bool) if mask is None else mask
        lanes = [np.flatnonzero(row) for row in active]
        cost = total([row_cost(x[own], own, width) for x, own in zip(relative, lanes, strict=True)])
        if len(memo) > 100_000:
            memo.clear()
        memo[key] = cost
    return cost


def total(rows: Sequence[AccessCost]) -> AccessCost:
    """The cost of several warps."""
    return AccessCost(*(sum(column) for column in zip(*rows, strict=True)))


def _stored_row(addresses: Array, lanes: Array, width: int) -> AccessCost:
    size = lanes_per_phase(addresses, lanes, width, pairs=False)
    return _phases(addresses, lanes, width, size)


def _loaded_row(addresses: Array, lanes: Array, width: int) -> AccessCost:
    return _phases(addresses, lanes, width, lanes_per_phase(addresses, lanes, width, pairs=True))


def lanes_per_phase(addresses: Array, lanes: Array, width: int, *, pairs: bool) -> int:
    """How many lanes pass at once; `addresses` are those of the active `lanes`."""
    size = max(4, min(32, 128 // width))
    return 2 * size if pairs and width > 4 and _alike(addresses, lanes) else size


def _alike(addresses: Array, lanes: Array) -> bool:
    """Whether active lanes n and n^1, or n and n^2, never have different addresses."""
    every = np.zeros(32, addresses.dtype)
    active = np.zeros(32, bool)
    every[lanes], active[lanes] = addresses, True
    return any(
        not (active & active[ALL_LANES ^ bit] & (every != every[ALL_LANES ^ bit])).any()
        for bit in (1, 2)
    )


def _phases(addresses: Array, lanes: Array, width: int, lanes_per_phase: int) -> AccessCost:
    words = max(1, width // 4)
    wavefronts = 0
    phases = lanes // lanes_per_phase
    present = np.unique(phases)
    for phase in present:
        start = addresses[phases == phase] >> 2
        distinct = np.unique((start[:, None] + np.arange(words)).ravel())
        wavefronts += int(np.bincount(distinct % BANKS, minlength=BANKS).max())
    # What ncu calls ideal: the active lanes' bytes, 128 to a wavefront, if it isn't fewer already.
    ideal = min(wavefronts, -(-len(lanes) * width // (4 * BANKS)))
    return AccessCost(wavefronts, ideal, 0, 0, 0, conflicts=wavefronts - len(present))


def _global_row(addresses: Array, lanes: Array, width: int) -> AccessCost:
    if not len(addresses):
        return NOTHING
    ends = addresses + (width - 1)
    both = np.concatenate([addresses, ends])
    ideal = -(-len(addresses) * width // SECTOR_BYTES)
    sectors, tags = np.unique(both // SECTOR_BYTES), np.unique(both // TAG_BYTES)
    # As for wavefronts: a broadcast's one sector is ideal.
    best = min(len(sectors), ideal)
    return AccessCost(0, 0, len(sectors), best, len(tags), l1_sectors=len(sectors), requests=1)
