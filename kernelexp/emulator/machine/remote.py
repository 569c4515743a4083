"""Stores to another CTA's shared memory that signal an mbarrier (st.async)."""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.access import Access
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.asynchronous import Pending
from kernelexp.emulator.machine.machine import WarpSet


def store(
    warps: WarpSet, to: Array, values: Array, barriers: Array, access: Access, m: Mask
) -> None:
    """Stores each lane's value at a cluster address and completes its bytes on a barrier there."""
    machine, site = warps.machine, access.site
    to, barriers, lanes = to.copy(), barriers.copy(), warps.active(m)

    def land() -> None:
        machine.spaces["cluster"].store(warps, to, values, access, m)
        machine.clocks.tick()
        for row, lane in zip(*np.nonzero(lanes), strict=True):
            place = int(warps.warps[row])
            barrier = machine.mbarriers.find(place, int(barriers[row, lane]), site)
            if barrier is not None:
                seen = machine.clocks.release(place)
                machine.mbarriers.complete(barrier, access.size, seen, site)

    machine.engines.issue(Pending(f"a store to another CTA ({site.where()})", land, site))
