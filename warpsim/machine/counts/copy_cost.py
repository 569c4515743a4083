"""What one LDGSTS of a warp costs, a copy of 4, 8 or 16 bytes per lane.

The rules are ncu's on an H200, for 2,900 patterns of addresses and masks
(warpsim/docs/counters.md).

Through the L1 (cp.async.ca), lanes pass in phases as those of a store do. Two lanes of a phase get
in each other's way where they are at the same banks of shared memory, or their sources at the same
place of a line of 128 bytes. A phase takes as many wavefronts as the lane that is most in the way
has such neighbours, with itself. The sectors are those of any load.

Past the L1 (cp.async.cg), what comes from one sector goes to one sector, straight or with its
halves exchanged: this is a transfer, and ncu counts each as a sector. A wavefront makes transfers
from one line to one line that fill the same halves and either keep or change the parity of the
sector's number, from each sector one and to each sector one.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.counts.access import (
    BANKS,
    SECTOR_BYTES,
    TAG_BYTES,
    AccessCost,
    global_cost,
    total,
)

_UNIT = 16
_UNITS = TAG_BYTES // _UNIT
_LINE_SECTORS = TAG_BYTES // SECTOR_BYTES
_memo: dict[tuple[object, ...], AccessCost] = {}


def copy_cost(
    to: Array,
    source: Array,
    width: int,
    *,
    active: Array,
    read: Array,
    bypasses: bool,
    fills: bool,
) -> AccessCost:
    """Cost of a copy; the arrays are [warps, 32].

    to, source: addresses of 4, 8 or 16 bytes (`width`), int64. active: lanes that write shared
    memory. read: those of them that read global memory; the others write zeros. bypasses: past the
    L1. fills: the instruction can leave out bytes or lanes, and ncu counts it as a store as well.
    """
    to, source = _relative(to, active), _relative(source, read)
    key = (width, bypasses, fills, *(a.tobytes() for a in (to, source, active, read)))
    cost = _memo.get(key)
    if cost is None:
        if len(_memo) > 100_000:
            _memo.clear()
        rows = zip(to, source, active, read, strict=True)
        cost = _memo[key] = total([_row(*row, width, bypasses, fills) for row in rows])
    return cost


def _relative(addresses: Array, lanes: Array) -> Array:
    """Addresses from the line of the first on, 0 of lanes that have none: lines are all that
    matters, and their distances."""
    first = np.where(lanes, addresses, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    return np.where(lanes, addresses - (first & ~np.int64(TAG_BYTES - 1)), 0)


def _row(
    to: Array, source: Array, active: Array, read: Array, width: int, bypasses: bool, fills: bool
) -> AccessCost:
    through = _wavefronts(to, source, active, read, width)
    ideal = min(through, -(-int(active.sum()) * width // (4 * BANKS)))
    cost = global_cost(source[None], width, read[None])._replace(requests=int(active.any()))
    if not bypasses:
        return cost._replace(wavefronts=through, ideal_wavefronts=ideal)
    # Of lanes with one destination the first counts.
    _, kept = np.unique(to[read], return_index=True)
    to, source = to[read][kept] // _UNIT, source[read][kept] // _UNIT
    transfers = _transfers(to.tolist(), source.tolist())
    half_sectors = zip((to // 2).tolist(), (source // _UNITS).tolist(), strict=True)
    return cost._replace(
        wavefronts=_bypassing(transfers) + (through if fills else 0),
        ideal_wavefronts=-(-len(to) // _UNITS) + (ideal if fills else 0),
        sectors=len(transfers),
        ideal_sectors=-(-len(to) // 2),
        l1_sectors=len(set(half_sectors)),
    )


def _wavefronts(to: Array, source: Array, active: Array, read: Array, width: int) -> int:
    """Those of a copy through the L1."""
    places = TAG_BYTES // width
    count = 0
    for first in range(0, 32, min(32, places)):
        lanes = first + np.flatnonzero(active[first : first + places])
        if not len(lanes):
            continue
        bank, place = (a[lanes] // width % places for a in (to, source))
        same_place = (place[:, None] == place) & read[lanes][:, None] & read[lanes]
        count += int(((bank[:, None] == bank) | same_place).sum(axis=1).max())
    return count


def _transfers(to: list[int], source: list[int]) -> dict[tuple[int, int, int], int]:
    """The halves of the destination, a bit each, by sector of the source, sector of the destination
    and whether halves are exchanged."""
    halves: dict[tuple[int, int, int], int] = defaultdict(int)
    for here, there in zip(to, source, strict=True):
        halves[there // 2, here // 2, (here ^ there) & 1] |= 1 << (here & 1)
    return halves


def _bypassing(transfers: dict[tuple[int, int, int], int]) -> int:
    """Wavefronts of a copy past the L1."""
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for (source, to, exchanged), halves in transfers.items():
        lines = source // _LINE_SECTORS, to // _LINE_SECTORS
        groups[*lines, exchanged, halves, (source ^ to) & 1].append((source, to))
    return sum(
        max(max(Counter(end).values()) for end in zip(*pairs, strict=True))
        for pairs in groups.values()
    )
