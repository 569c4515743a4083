"""Stores and reductions in another CTA's shared memory that signal an mbarrier (st.async,
red.async)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.arithmetic.reductions import Combine
from warpsim.machine.checks.races import Races
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer, Pending
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.layout import WINDOW
from warpsim.machine.sync import atomics
from warpsim.machine.wave.machine import WarpSet
from warpsim.machine.wave.spaces import ClusterShared

Stores = list[tuple[int, Issuer, int]]
"""What landed: its arena offset, who issued it, and the agent as which it was written."""


def store(
    warps: WarpSet, to: Array, values: Array, barriers: Array, access: AccessKind, m: Mask
) -> None:
    """Stores each lane's value at a cluster address and completes its bytes on a barrier there."""
    space, races = _cluster(warps), warps.machine.races

    def act(offsets: Array, written: Stores) -> None:
        for offset, issuer, agent in written:
            races.engine_write(_units(races, offset, access), issuer, agent)
        space.deposit(warps, offsets, values, access, m)

    _signalling(warps, act, to, barriers, access, m)


def reduce(
    warps: WarpSet,
    to: Array,
    values: Array,
    barriers: Array,
    function: Combine,
    access: AccessKind,
    m: Mask,
) -> None:
    """Reduces each lane's value into a cluster address and completes its bytes on a barrier."""
    space, races = _cluster(warps), warps.machine.races
    to, values = to.copy(), values.copy()

    def act(offsets: Array, written: Stores) -> None:
        atomics.reduce(warps, space, to, values, function, access, m)
        for offset, issuer, agent in written:
            races.engine_reduction(_units(races, offset, access), issuer, agent)

    _signalling(warps, act, to, barriers, access, m)


def _units(races: Races, offset: int, access: AccessKind) -> Array:
    units: Array = races.history.units_of(np.array([offset]), access.size)
    return units.ravel()


def _cluster(warps: WarpSet) -> ClusterShared:
    space = warps.machine.spaces["cluster"]
    assert isinstance(space, ClusterShared)
    return space


def _signalling(
    warps: WarpSet,
    act: Callable[[Array, Stores], None],
    to: Array,
    barriers: Array,
    access: AccessKind,
    m: Mask,
) -> None:
    machine, site, space = warps.machine, access.site, _cluster(warps)
    to, barriers = to.copy(), barriers.copy()
    issuers = [
        (row, lane, machine.issuer(place, lane, site)) for row, place, lane in warps.each_lane(m)
    ]
    for row, lane, issuer in issuers:
        _, cta, low = machine.shared_offset(issuer.place, int(barriers[row, lane]) & WINDOW, site)
        machine.mbarriers.aim(issuer.place, cta, low, site)

    def land() -> None:
        machine.clocks.tick()
        offsets = machine.cluster_offsets(warps, to, site, m)
        space.aligned(warps, offsets, access, m)
        signalled, written = [], []
        for row, lane, issuer in issuers:
            address = int(barriers[row, lane]) & WINDOW
            _, cta, low = machine.shared_offset(issuer.place, address, site)
            barrier = machine.mbarriers.find_in(cta, low, site)
            offset = int(offsets[row, lane])
            if not 0 <= offset - machine.arena_offset(cta, 0) < machine.shared_stride:
                sentence = "a store to one CTA that signals an mbarrier of another."
                machine.report("mbarrier-misuse", sentence, site, issuer.place)
            agent = machine.clocks.copy if barrier is None else barrier.agent
            written.append((offset, issuer, agent))
            signalled.append((barrier, issuer))
        act(offsets, written)
        for barrier, issuer in signalled:
            machine.mbarriers.stored(barrier, access.size, issuer)

    machine.engines.issue(Pending("a store to another CTA", land, site))
