"""Stores and reductions in another CTA's shared memory that signal an mbarrier (st.async,
red.async)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelexp.emulator.machine import atomics
from kernelexp.emulator.machine.access import Access
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.asynchronous import Pending
from kernelexp.emulator.machine.machine import WarpSet


def store(
    warps: WarpSet, to: Array, values: Array, barriers: Array, access: Access, m: Mask
) -> None:
    """Stores each lane's value at a cluster address and completes its bytes on a barrier there."""
    to = to.copy()

    def act() -> None:
        warps.machine.spaces["cluster"].store(warps, to, values, access, m)

    _signalling(warps, act, barriers, access, m)


def reduce(
    warps: WarpSet,
    to: Array,
    values: Array,
    barriers: Array,
    function: Callable[[Array, Array], Array],
    access: Access,
    m: Mask,
) -> None:
    """Reduces each lane's value into a cluster address and completes its bytes on a barrier."""
    to, values = to.copy(), values.copy()

    def act() -> None:
        memory = warps.machine.spaces["cluster"]
        atomics.reduce(warps, memory, to, values, function, access, m)

    _signalling(warps, act, barriers, access, m)


def _signalling(
    warps: WarpSet, act: Callable[[], None], barriers: Array, access: Access, m: Mask
) -> None:
    machine, site = warps.machine, access.site
    barriers, lanes = barriers.copy(), warps.active(m)

    def land() -> None:
        act()
        machine.clocks.tick()
        for row, lane in zip(*np.nonzero(lanes), strict=True):
            place = int(warps.warps[row])
            barrier = machine.mbarriers.find(place, int(barriers[row, lane]), site)
            if barrier is not None:
                seen = machine.clocks.release(place)
                machine.mbarriers.complete(barrier, access.size, seen, site)

    machine.engines.issue(Pending(f"a store to another CTA ({site.where()})", land, site))
