"""Bytes between shared and global memory: what the copy engine reads, writes and signals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpsim.arithmetic.reductions import Combine
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer, Pending
from warpsim.machine.core.findings import Fatal
from warpsim.machine.memory import tma
from warpsim.machine.memory.arena import BARRIER, UNWRITTEN, WRITTEN
from warpsim.machine.memory.layout import WINDOW
from warpsim.machine.wave.machine import Machine


class CopyDestination(NamedTuple):
    """Where a load's bytes go, and what they signal, as its thread says."""

    to: int
    """Shared or cluster address."""
    barrier: int
    """The same, of the mbarrier."""
    ranks: int | None = None
    """Mask of the CTAs of the cluster that receive a multicast."""
    pair: bool = False
    """Whether the barrier may lie in the other CTA of a pair."""


class Landing(NamedTuple):
    """Where a load lands in one CTA, checked: resident CTAs, and offsets in their shared memory."""

    cta: int
    low: int
    barrier_cta: int
    barrier: int


def landings(
    machine: Machine, issuer: Issuer, destination: CopyDestination, size: int, align: int
) -> list[Landing]:
    """One for each CTA that receives a multicast: it lands in each at a time of its own."""
    cta, low = shared_range(machine, issuer, destination.to, size, align)
    _, named, barrier = machine.shared_offset(
        issuer.place, destination.barrier & WINDOW, issuer.site
    )
    ctas = [cta]
    if destination.ranks is not None:
        ctas = machine.multicast(issuer.place, destination.ranks, issuer.site)

    def signalled(cta: int) -> int:
        # Multicast: the same offset in each receiving CTA; in pairs, in the CTA of the pair that
        # has the parity of the one named.
        if ctas == [named]:
            return named
        if destination.pair:
            return (cta & ~1) | (machine.ctas[named].rank & 1)
        return cta if len(ctas) > 1 else named

    places = [Landing(cta, low, signalled(cta), barrier) for cta in ctas]
    for place in places:
        machine.mbarriers.aim(issuer.place, place.barrier_cta, barrier, issuer.site)
    return places


def issue_load(
    machine: Machine,
    issuer: Issuer,
    places: list[Landing],
    size: int,
    what: str,
    arrive: Callable[[Landing], None],
) -> list[Pending]:
    """Issues a load whose bytes arrive in `size` bytes of each place; what is in flight then."""
    issued = []
    for place in places:
        base = machine.arena_offset(place.cta, place.low)
        operation = Pending(
            what,
            functools.partial(arrive, place),
            issuer.site,
            touches=((base, base + size),),
            signals=(machine.arena_offset(place.barrier_cta, place.barrier),),
            cta=place.cta,
        )
        issued.append(machine.engines.issue(operation))
    return issued


class Reduction(NamedTuple):
    """How a copy changes what it meets."""

    operation: Combine
    element: int
    """Bytes."""


def land(
    machine: Machine,
    issuer: Issuer,
    place: Landing,
    data: Array,
    form: tma.TileLayout,
    count: int | None = None,
) -> None:
    """Writes a load's bytes to a CTA that receives them, and completes `count` of them there, or
    all."""
    barrier = machine.mbarriers.find_in(place.barrier_cta, place.barrier, issuer.site)
    agent = machine.clocks.copy if barrier is None else barrier.agent
    _land_in_shared(machine, issuer, place.cta, place.low, data, form, agent)
    machine.mbarriers.landed(barrier, len(data) if count is None else count, issuer)


def land_reduced(
    machine: Machine, issuer: Issuer, place: Landing, data: Array, reduction: Reduction
) -> None:
    """Reduces a copy's bytes into shared memory of another CTA, and completes them there."""
    barrier = machine.mbarriers.find_in(place.barrier_cta, place.barrier, issuer.site)
    agent = machine.clocks.copy if barrier is None else barrier.agent
    base = machine.arena_offset(place.cta, place.low)
    machine.clocks.tick()
    units = _units(machine, base, place.low, len(data), tma.LINEAR)
    machine.races.engine_reduction(units, issuer, agent)
    view, kind = machine.shared.data[base : base + len(data)], f"u{reduction.element}"
    view[...] = reduction.operation(view.copy().view(kind), data.view(kind)).view(np.uint8)
    machine.mbarriers.landed(barrier, len(data), issuer)


def _land_in_shared(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    low: int,
    data: Array,
    form: tma.TileLayout,
    agent: int,
) -> None:
    """Writes bytes to shared memory of a resident CTA."""
    base = machine.arena_offset(cta, low)
    if machine.ctas[cta].exited:
        sentence = f"a copy arrives in CTA {machine.ctas[cta].number}, which has ended."
        machine.report("remote-cta-exited", sentence, issuer.site, issuer.place)
    machine.races.reports.issued(issuer)
    footprint, fast = form.footprint(len(data)), machine.shared_space.fast
    _in_use(machine, issuer, base, footprint)
    machine.clocks.tick()
    chunks = tma.chunk_offsets(low, len(data), form)
    if fast and len(chunks) * tma.CHUNK_BYTES == len(data):
        if fast.write_chunks(chunks, base, footprint, data, issuer, agent):
            return
    machine.races.engine_write(_units(machine, base, low, len(data), form), issuer, agent)
    _overwrite(machine, issuer, base, footprint)
    if form is tma.LINEAR:
        machine.shared.data[base : base + len(data)] = data
        machine.shared.state[base : base + len(data)] = WRITTEN
    else:
        machine.shared.scatter(base + chunks, data.view(np.uint64).reshape(-1, 2), 8, 2)


def _units(machine: Machine, base: int, low: int, size: int, form: tma.TileLayout) -> Array | slice:
    """What a copy touches, in the race check's units."""
    unit = machine.races.history.unit
    if form.row == form.pitch:  # No gaps, whatever the swizzle does.
        return slice(base // unit, (base + size) // unit)
    chunks = base + tma.chunk_offsets(low, size, form)
    return machine.races.history.units_of(chunks, tma.CHUNK_BYTES).ravel()


def _overwrite(machine: Machine, issuer: Issuer, base: int, size: int) -> None:
    """A finding if mbarriers lie where a copy writes."""
    barriers = np.flatnonzero(machine.shared.state[base : base + size] == BARRIER)
    if len(barriers):
        machine.mbarriers.overwrite(base + barriers, issuer.site)


def _in_use(machine: Machine, issuer: Issuer, base: int, size: int) -> None:
    """A finding if another pending operation reads or writes these bytes."""
    site, last = issuer.site, base + size
    for other in machine.engines.pending:
        for first, end in other.touches:
            if first < last and base < end and other.site is not site:
                machine.report(
                    "overwritten-in-use",
                    f"{machine.shared_name(base)} is written by a copy while this still uses it: "
                    f"{other.describe()}.",
                    issuer.site,
                    issuer.place,
                )
                return


def refused(machine: Machine, issuer: Issuer, name: str, sentence: str) -> Fatal:
    """Reports what a copy can't go on after."""
    machine.report(name, sentence, issuer.site, issuer.place)
    return Fatal()


def shared_range(
    machine: Machine, issuer: Issuer, address: int, size: int, align: int
) -> tuple[int, int]:
    """(resident CTA, offset) of a copy's shared-memory side, checked."""
    _, cta, low = machine.shared_offset(issuer.place, address & WINDOW, issuer.site)
    if low % align:
        sentence = f"{machine.layout.spell(low)} is not at a multiple of {align} bytes."
        raise refused(machine, issuer, "misaligned", sentence)
    if left := machine.layout.left_by(low, size):
        place = machine.layout.spell(low)
        sentence = f"a copy of {size:,} bytes at {place} leaves {left}."
        raise refused(machine, issuer, "out-of-bounds", sentence)
    return cta, low


def fetch_shared(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    low: int,
    size: int,
    form: tma.TileLayout,
    agent: int,
    wanted: Callable[[], Array] | None = None,
) -> Array:
    """Bytes from shared memory, read by the copy engine as `agent` of the clocks.

    wanted: gives which of them, bool [size], are not dropped; None: all, but bytes that pad a
        struct between written ones.
    """
    base, fast = machine.arena_offset(cta, low), machine.shared_space.fast
    machine.clocks.tick()
    chunks = tma.chunk_offsets(low, size, form)
    data = fast.read_chunks(chunks, base, issuer, agent) if fast else None
    if data is not None:
        return data
    machine.races.engine_read(_units(machine, base, low, size, form), issuer, agent)
    chunks = base + chunks
    unwritten = machine.shared.states(16)[chunks // 16].view(np.uint8).reshape(-1, 16) == UNWRITTEN
    if (unwritten.all(axis=1) if wanted is None else unwritten.ravel() & wanted()).any():
        sentence = f"a copy reads {machine.shared_name(base)}, which was never written."
        machine.report("uninitialised-read", sentence, issuer.site, issuer.place)
    return machine.shared.view(8, 2)[chunks // 16].reshape(-1).view(np.uint8)
