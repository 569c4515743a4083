"""What instructions do to mbarriers: initialise, invalidate, arrive, count transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm
from warpsim.machine.core.site import Site
from warpsim.machine.memory.layout import RANK_SHIFT
from warpsim.machine.wave.machine import WarpSet
from warpsim.machine.wave.mbarrier import Mbarrier

Note: TypeAlias = Callable[[int, list[int], Mbarrier], None]
"""Keeps what (row, lanes) get of the mbarrier that they are about to arrive at."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What an instruction that arrives does, in each lane."""

    expects: bool = False
    """Whether its number is of bytes, which one arrival is to wait for, and not of arrivals."""
    drops: bool = False
    releases: bool = True
    narrow: bool = False
    """Whether it says that it releases to its own CTA only."""
    local: bool = False
    """Whether its form names a barrier of the own CTA only."""
    completes: bool = True
    """Whether it may be the last of its phase."""

    def form(
        self, state: int, address: int, octets: int, number: int, offset: int, plus: int = -1
    ) -> CompiledForm:
        """The instruction in compiled code, by its slots; octets: of the address."""
        bits = self.expects, self.drops, self.releases, self.narrow, self.local, self.completes
        how = sum(bit << index for index, bit in enumerate((*bits, True)))
        slots = state, address, plus, number
        return CompiledForm("mbarrier.arrive", slots, (octets, how), offset)


def init(warps: WarpSet, m: Mask, addresses: Array, counts: Array, site: Site) -> None:
    """Phase 0, `counts` arrivals pending."""
    mbarriers = warps.machine.mbarriers
    for row, place, at, lanes in mbarriers.named(warps, m, addresses, site):
        for lane in lanes:
            mbarriers.init(place, at, int(counts[row, lane]), site)


def invalidate(warps: WarpSet, m: Mask, addresses: Array, site: Site) -> None:
    """The storage may be reused."""
    mbarriers = warps.machine.mbarriers
    for _, place, at, _ in mbarriers.named(warps, m, addresses, site):
        mbarriers.invalidate(place, at, site)


def arrive(
    warps: WarpSet,
    m: Mask,
    addresses: Array,
    numbers: Array,
    how: Arrival,
    site: Site,
    note: Note | None = None,
) -> None:
    """Each lane adds its transaction bytes, then arrives."""
    clocks, mbarriers = warps.machine.clocks, warps.machine.mbarriers
    for row, place, at, lanes in mbarriers.named(warps, m, addresses, site):
        barrier = mbarriers.find(place, at, site)
        if barrier is None:
            continue
        remote = at >> RANK_SHIFT != warps.machine.cta_of(place).rank
        if how.local and remote:
            sentence = f"{site.opcode} names an mbarrier of another CTA: .shared::cluster may."
            warps.machine.report("mbarrier-misuse", sentence, site, place)
        total = _sum(numbers[row], lanes)
        if note is not None:
            note(row, lanes, barrier)
        seen = clocks.release_narrowly(place) if how.narrow and remote else clocks.release(place)
        if not how.releases:
            seen = clocks.engines_only(seen)
        count = len(lanes) if how.expects else total
        if how.expects:
            mbarriers.expect(barrier, total, site)
        drop = count if how.drops else 0
        mbarriers.arrive(barrier, count, seen, site, drop=drop, completes=how.completes)


def _sum(values: Array, lanes: list[int]) -> int:
    """The sum of these lanes' values, mostly of one."""
    return int(values[lanes[0]] if len(lanes) == 1 else values[lanes].sum())


def transfer(
    warps: WarpSet, m: Mask, addresses: Array, sizes: Array, site: Site, *, expects: bool
) -> None:
    """Bytes more to wait for, or bytes that have arrived, with no arrival of the lane itself."""
    mbarriers = warps.machine.mbarriers
    for row, place, at, lanes in mbarriers.named(warps, m, addresses, site):
        barrier = mbarriers.find(place, at, site)
        if barrier is None:
            continue
        size = _sum(sizes[row], lanes)
        if expects:
            mbarriers.expect(barrier, size, site)
        else:
            mbarriers.complete(barrier, size, None, site)
