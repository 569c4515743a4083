"""Stores to another CTA's shared memory that signal an mbarrier (st.async)."""

from __future__ import annotations

from kernelexp.emulator.machine.access import Access
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.asynchronous import Pending
from kernelexp.emulator.machine.layout import WINDOW
from kernelexp.emulator.machine.machine import WarpSet
from kernelexp.emulator.machine.spaces import Cluster


def store(
    warps: WarpSet, to: Array, values: Array, barriers: Array, access: Access, m: Mask
) -> None:
    """Stores each lane's value at a cluster address and completes its bytes on a barrier there."""
    machine, site, space = warps.machine, access.site, warps.machine.spaces["cluster"]
    assert isinstance(space, Cluster)
    to, barriers = to.copy(), barriers.copy()
    issuers = [
        (row, lane, machine.issuer(place, lane, site)) for row, place, lane in warps.each_lane(m)
    ]

    def land() -> None:
        machine.clocks.tick()
        offsets = machine.cluster_offsets(warps, to, site, m)
        space.aligned(warps, offsets, access, m)
        found = []
        for row, lane, issuer in issuers:
            address = int(barriers[row, lane]) & WINDOW
            _, cta, low = machine.shared_offset(issuer.place, address, site)
            barrier = machine.mbarriers.find_in(cta, low, site)
            if not 0 <= offsets[row, lane] - machine.arena_offset(cta, 0) < machine.shared_stride:
                sentence = "a store to one CTA that signals an mbarrier of another."
                machine.report("mbarrier-misuse", sentence, site, issuer.place)
            agent = machine.clocks.copy if barrier is None else barrier.agent
            units = machine.races.history.units_of(offsets[row, lane : lane + 1], access.size)
            machine.races.engine_write(units.ravel(), issuer, agent)
            found.append((barrier, issuer))
        space.deposit(warps, offsets, values, access, m)
        for barrier, issuer in found:
            machine.mbarriers.landed(barrier, access.size, issuer)

    machine.engines.issue(Pending(f"a store to another CTA ({site.where()})", land, site))
