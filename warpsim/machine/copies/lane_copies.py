"""cp.async: copies of 4, 8 or 16 bytes per lane from global to shared memory (LDGSTS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import CommitGroups, Pending
from warpsim.machine.core.site import Site
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.counts.copy_cost import copy_cost
from warpsim.machine.sync.gates import Fragment, PendingWait
from warpsim.machine.wave.machine import Machine, WarpSet
from warpsim.machine.wave.mbarrier import Mbarrier


class CopyGroups(CommitGroups[Pending]):
    """Copies by warp, not by thread."""


class LaneCopy:
    """An instruction that copies `size` bytes per lane.

    bypasses: past the L1. fills: lanes, or some of their bytes, can be zeros.
    """

    def __init__(self, site: Site, size: int, *, bypasses: bool, fills: bool) -> None:
        self.size, self.bypasses, self.fills = size, bypasses, fills
        element, elements = (4, 1) if size == 4 else (8, size // 8)
        self.read = AccessKind(site, element, elements, store=False, counted=False)
        self.byte = AccessKind(site, 1, 1, store=False, counted=False)
        self.write = AccessKind(site, element, elements, store=True, counted=False)

    def issue(self, warps: WarpSet, to: Array, source: Array, kept: Array, m: Mask) -> None:
        """Copies the first `kept` bytes of each lane and fills up with zeros."""
        machine, write = warps.machine, self.write
        kept, source, to = kept.copy(), source.copy(), to.copy()
        wanted: Array = (kept > 0) if m is True else (kept > 0) & m
        shared = machine.shared_space

        def check(offsets: Array, m: Mask) -> None:
            shared.writable(warps, offsets, write, m)

        placed = shared.within(warps, to, write, m, check)
        if placed is None:
            return
        offsets, m = placed
        active = np.broadcast_to(np.asarray(m), wanted.shape)
        cost = copy_cost(
            to.astype(np.int64),
            source.astype(np.int64),
            self.size,
            active=active,
            read=wanted,
            bypasses=self.bypasses,
            fills=self.fills,
        )
        machine.execution.tally(write.site.number).add(cost)
        whole: Array = wanted & (kept >= self.size)
        reads = [(source, self.read, self._inside(warps, source, self.read, whole))]
        parts = self._aligned(warps, source, wanted & ~whole)  # that read their first bytes only
        for at in range(int(kept[parts].max(initial=0))):
            place = source + source.dtype.type(at)
            reads.append(
                (place, self.byte, self._inside(warps, place, self.byte, parts & (kept > at)))
            )

        late = machine.engines.late
        if late:
            self._begin_reads(warps, reads)
        follows = not late or (shared.fast and shared.fast.follows(warps, to, write, m))
        uses = [] if follows else machine.races.uses(warps, offsets, write, m)
        begun = machine.clocks.tick()

        def land() -> None:
            values = self._loaded(warps, reads)
            fast = shared.fast
            if uses or not (fast and fast.unused_since(warps, to, write, m, begun)):
                machine.races.meanwhile(warps, offsets, values, write, m, begun, uses)
            machine.clocks.tick()
            if shared.fast and shared.fast.store(warps, to, values, write, m):
                return
            machine.races.write(warps, offsets, values, write, m)
            at, data = (offsets, values) if m is True else (offsets[m], values[m])
            machine.shared.scatter(at, data, write.element, write.elements)

        what = f"a cp.async of {self.size} bytes per lane"
        operation = machine.engines.issue(Pending(what, land, write.site))
        for place in warps.warps.tolist():
            machine.state(CopyGroups).add(place, operation)

    def _inside(self, warps: WarpSet, source: Array, access: AccessKind, wanted: Array) -> Mask:
        """The lanes that may read there."""
        if not wanted.any():
            return wanted
        m: Mask = True if wanted.all() else wanted
        result = warps.machine.global_space.within(warps, source, access, m)
        return np.zeros(wanted.shape, bool) if result is None else result[1]

    def _aligned(self, warps: WarpSet, source: Array, parts: Array) -> Array:
        """Lanes that read in part, but from an address as for the whole."""
        space = warps.machine.global_space
        if not parts.any():
            return parts

        def check(offsets: Array, m: Mask) -> None:
            space.aligned(warps, offsets, self.read, m)

        placed = space.within(warps, source, self.byte, parts, check)
        return np.zeros_like(parts) if placed is None else warps.active(placed[1])

    def _begin_reads(self, warps: WarpSet, reads: list[tuple[Array, AccessKind, Mask]]) -> None:
        """Checks now what the copy will read later."""
        space = warps.machine.global_space
        for source, access, m in reads:
            if m is not True and not m.any():
                continue
            if not (space.fast and space.fast.follows(warps, source, access, m)):
                placed = space.within(warps, source, access, m)
                if placed is not None:
                    warps.machine.world_races.source(warps, placed[0], access, placed[1])

    def _loaded(self, warps: WarpSet, reads: list[tuple[Array, AccessKind, Mask]]) -> Array:
        """What the copy brings: all of it, then single bytes of other lanes; zeros beyond."""
        shape = (*reads[0][0].shape, self.read.elements)
        values = np.zeros(shape, f"u{self.read.element}")
        for at, (source, access, m) in enumerate(reads, -1):
            if m is not True and not m.any():
                continue
            loaded = warps.machine.global_space.load(warps, source, access, m)
            lanes = slice(None) if m is True else m
            if at < 0:
                values[lanes] = loaded.reshape(shape)[lanes]
            else:
                values.view(np.uint8)[lanes, at] = loaded.reshape(shape[:-1])[lanes]
        return values[..., 0] if shape[-1] == 1 else values


def commit(machine: Machine, place: int) -> None:
    """Closes the warp's group."""
    machine.state(CopyGroups).commit(place)


@dataclass(frozen=True, eq=False)
class CopyWait(PendingWait):
    """At most `allowed` of the warp's groups are pending; None: nothing is, closed or open."""

    allowed: int | None

    what = "cp.async copies"

    def waited(self, machine: Machine, fragment: Fragment) -> list[Pending]:
        groups = machine.state(CopyGroups)
        due = groups.due(fragment.warp, self.allowed or 0)
        return due + groups.opened(fragment.warp) if self.allowed is None else due

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        machine.state(CopyGroups).forget(fragment.warp, self.allowed or 0)


def arrive_when_landed(
    warps: WarpSet,
    addresses: Array,
    m: Mask,
    site: Site,
    *,
    adds: bool = False,
    as_bytes: bool = False,
) -> None:
    """Each lane arrives at its mbarrier when the warp's copies so far have landed.

    adds: the arrivals come on top of the mbarrier's count of this phase.
    as_bytes: each is not an arrival but one of the bytes that the phase waits for.
    """
    machine = warps.machine
    groups = machine.state(CopyGroups)
    for _, place, at, lanes in machine.mbarriers.named(warps, m, addresses, site):
        barrier = machine.mbarriers.find(place, at, site)
        if barrier is None:
            continue
        if adds:
            barrier.pending += len(lanes)
        before = [*groups.due(place, 0), *groups.opened(place)]

        def land(
            barrier: Mbarrier = barrier,
            count: int = len(lanes),
            before: list[Pending] = before,
            place: int = place,
        ) -> None:
            machine.engines.land_until(before)
            seen = machine.clocks.release(place)
            if as_bytes:
                machine.mbarriers.complete(barrier, count, seen, site)
            else:
                machine.mbarriers.arrive(barrier, count, seen, site)

        machine.engines.issue(Pending("an arrival", land, site))
