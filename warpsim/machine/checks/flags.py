"""Order carried by memory itself: what a release at an address hands to an acquire there."""

from __future__ import annotations

import numpy as np

from warpsim.machine.checks.shared_flags import SharedFlags, are_shared
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.clocks import Clocks
from warpsim.machine.core.warps import Warps
from warpsim.machine.memory.history import History
from warpsim.machine.memory.layout import GLOBAL_BASE, SHARED_WINDOW, WINDOW, WINDOW_BITS

Key = tuple[int, int]
_GLOBAL = -1
"""In place of a cluster: global memory, for all CTAs."""
_CTA = -2
"""Less the CTA: any memory, for this one."""


class Flags:
    """Atomics, release stores, acquire loads and volatile accesses, by address.

    What is released without a fence, or for the own CTA, reaches other CTAs only as far as fences
    have made it visible.
    Who reads a flag acquires, with a fence or without: hardware that has seen the flag sees what
    was made visible before it.
    """

    def __init__(
        self,
        clocks: Clocks,
        cluster_size: int,
        within: SharedFlags | None,
        history: History,
        announced: frozenset[Key],
    ) -> None:
        """within: for relaxed accesses to shared memory where a cluster is one CTA; history: of
        global memory; announced: words of it that earlier waves released something at."""
        self._history = history
        self.clocks = clocks
        self.cluster_size = cluster_size
        self._within = within
        self.released: dict[Key, Array] = dict.fromkeys(announced, clocks.earlier_row())
        self.relaxed: dict[Key, Array] = {}
        """Of stores in shared memory that release nothing: they order warps, as shared memory is
        in order, but not the lanes of one."""
        self._known: set[Key] = set(announced)

    def announced(self) -> frozenset[Key]:
        """What the next wave is given."""
        return frozenset(key for key in self.released if key[0] == _GLOBAL)

    def release(
        self, warps: Warps, address: Array, m: Mask, *, relaxed: bool, narrow: bool = False
    ) -> None:
        """narrow: for the CTA only."""
        if not self.clocks.ordered:
            return
        lanes = (address if m is True else address[m]).ravel()
        if relaxed and self._within is not None and are_shared(lanes):
            self._within.release(warps, address, m)
            return
        if relaxed and lanes.size and lanes.min() >= GLOBAL_BASE and self.clocks.is_quiet(warps):
            return  # the history of global memory tells that it is a flag
        rows: dict[tuple[int, bool], Array] = {}
        for warp, key, cta in self._keys(warps, address, m):
            shared = key[0] >= 0
            if (warp, shared) not in rows:
                weak = relaxed and not shared
                rows[warp, shared] = self.clocks.fenced(warp) if weak else self.clocks.release(warp)
            row = rows[warp, shared]
            self._known.add(key)
            if shared and self.cluster_size > 1 and (relaxed or narrow):
                # Other CTAs of the cluster see no more than fences have made visible.
                self._put(self.released, key, self.clocks.fenced(warp))
                self._put(self.relaxed if relaxed else self.released, (_CTA - cta, key[1]), row)
            elif relaxed and shared:
                self._put(self.relaxed, key, row)
            elif not relaxed or row.any():
                if not narrow or shared:
                    self._put(self.released, key, row)
                self._put(self.released, (_CTA - cta, key[1]), row)

    def known(self, warps: Warps, address: Array, m: Mask) -> bool:
        """Whether anybody has used any of these addresses as a flag."""
        lanes = (address if m is True else address[m]).astype(np.int64).ravel() - GLOBAL_BASE
        units = lanes[(lanes >= 0) & (lanes < len(self._history.relaxed) * self._history.unit)]
        if self._history.relaxed[units // self._history.unit].any():
            return True
        if self._within is not None and self._within.knows(warps, address, m):
            return True
        return bool(self._known) and any(
            key in self._known for _, key, _ in self._keys(warps, address, m)
        )

    def _put(self, flags: dict[Key, Array], key: Key, row: Array) -> None:
        old = flags.get(key)
        flags[key] = row if old is None else np.maximum(old, row)

    def acquire(
        self, warps: Warps, address: Array, m: Mask, *, narrow: bool = False, sure: bool = True
    ) -> None:
        """narrow: from the own CTA only. sure: by an acquire, or in shared memory."""
        clocks = self.clocks
        if self._within is not None and self._within.knows(warps, address, m):
            self._within.acquire(warps, address, m)
        if not (self.released or self.relaxed):
            return
        for warp, key, cta in self._keys(warps, address, m):
            for place in ((_CTA - cta, key[1]), key):
                row = self.released.get(place)
                if row is not None and not (narrow and place == (_GLOBAL, key[1])):
                    clocks.acquire(warp, row, sure=sure or key[0] >= 0)
            row = self.relaxed.get(key if self.cluster_size == 1 else (_CTA - cta, key[1]))
            if row is not None and key[0] >= 0:
                own = clocks.seen[warp, warp]
                clocks.acquire(warp, row)
                clocks.seen[warp, warp] = own

    def _keys(self, warps: Warps, address: Array, m: Mask) -> list[tuple[int, Key, int]]:
        """(warp, (cluster or _GLOBAL, address), its CTA) of each flag that warps name."""
        keys = []
        for row, warp in enumerate(warps.warps.tolist()):
            lanes = address[row] if m is True else address[row][m[row]]
            # Shared addresses of different clusters are different places.
            cta = int(warps.ctas[row])
            cluster = cta // self.cluster_size
            for at in set(lanes.tolist()):
                shared = at >> WINDOW_BITS in (0, SHARED_WINDOW >> WINDOW_BITS)
                keys.append((warp, (cluster, at & WINDOW) if shared else (_GLOBAL, at), cta))
        return keys
