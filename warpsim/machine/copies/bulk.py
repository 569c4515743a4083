"""Linear bulk copies, and the groups in which a thread waits for its bulk stores."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warpsim.machine.copies.copying import (
    CopyDestination,
    Landing,
    Reduction,
    fetch_shared,
    issue_load,
    land,
    land_reduced,
    landings,
    refused,
    shared_range,
)
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import CommitGroups, Issuer, Pending
from warpsim.machine.core.clocks import SLOTS
from warpsim.machine.core.warps import lanes_of
from warpsim.machine.counts.access import SECTOR_BYTES, TAG_BYTES
from warpsim.machine.memory import tma
from warpsim.machine.memory.arena import UNWRITTEN, WRITTEN
from warpsim.machine.memory.layout import GLOBAL_BASE
from warpsim.machine.sync.gates import Fragment, PendingWait
from warpsim.machine.wave.machine import Machine

ALIGN = 16


class BulkGroups(CommitGroups[Pending]):
    """Bulk stores, by thread: two operations each, for its read and its write."""


def issue_store(
    machine: Machine,
    issuer: Issuer,
    to: str,
    touches: tuple[int, int],
    read: Callable[[], Array],
    write: Callable[[Array], None],
) -> list[Pending]:
    """Issues a store of the open bulk group of its thread: first it reads, later it writes."""
    data: list[Array] = []
    site, order = issuer.site, object()

    def take() -> None:
        data.append(read())
        reading.landed = machine.clocks.now

    def give() -> None:
        machine.clocks.tick()
        write(data.pop())
        writing.landed = machine.clocks.now

    what = f"the read of a store to {to}"
    cta = machine.cta_of(issuer.place).place
    reading = Pending(what, take, site, order, (touches,), outgoing=True, cta=cta)
    writing = Pending(f"a store to {to}", give, site, order, cta=cta)
    machine.state(BulkGroups).add(issuer.thread, reading, writing)
    return [machine.engines.issue(operation) for operation in (reading, writing)]


def commit(machine: Machine, thread: int) -> None:
    """Closes the thread's group."""
    machine.state(BulkGroups).commit(thread)


@dataclass(frozen=True, eq=False)
class BulkWait(PendingWait):
    """At most `allowed` of the thread's groups are pending, or have still to read."""

    allowed: int
    reads_only: bool
    by_warp: bool = False
    """Whether a warp's groups are those of its first thread, whichever lanes execute it (SASS)."""

    what = "reads and writes of bulk copies"

    def _threads(self, fragment: Fragment) -> list[int]:
        lanes = [0] if self.by_warp else lanes_of(fragment.mask)
        return [fragment.warp * 32 + lane for lane in lanes]

    def waited(self, machine: Machine, fragment: Fragment) -> list[Pending]:
        groups = machine.state(BulkGroups)
        return [
            operation
            for thread in self._threads(fragment)
            for operation in groups.due(thread, self.allowed)
            if operation.touches or not self.reads_only
        ]

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        # What these copies have read may be overwritten by whoever hears of this; a copy that the
        # wait allows to be pending may have been read by now, but nobody can know.
        waited = self.waited(machine, fragment)
        read = max((p.landed for p in waited if p.touches), default=0)
        machine.clocks.learn(fragment.warp, machine.clocks.store + fragment.warp % SLOTS, read)
        written = max((p.landed for p in waited if not p.touches), default=0)
        machine.clocks.learn(fragment.warp, machine.clocks.output + fragment.warp % SLOTS, written)
        for thread in self._threads(fragment):
            machine.state(BulkGroups).forget(thread, self.allowed)


def load(
    machine: Machine,
    issuer: Issuer,
    destination: CopyDestination,
    source: int,
    size: int,
    from_shared: bool,
    reduction: Reduction | None = None,
) -> None:
    """Copies bytes from global memory, or the own CTA's shared memory, to shared memory, or
    reduces them into it."""
    _check_size(machine, issuer, size)
    if not size:  # Nothing moves, nothing is signalled, and nobody need wait.
        return
    places = landings(machine, issuer, destination, size, ALIGN)
    if not from_shared:
        multicast_to = 0 if destination.ranks is None else len(places)
        tally = machine.execution.tally(issuer.site.number)
        tally.load(_sectors(source, size), multicast_to)
    first = places[0]
    agent = machine.clocks.copy_agent(machine.arena_offset(first.barrier_cta, first.barrier))

    @functools.cache
    def read() -> Array:
        if from_shared:
            return _read_shared(machine, issuer, source, size, agent)
        return _read_global(machine, issuer, source, size)

    def arrive(place: Landing) -> None:
        if reduction is None:
            land(machine, issuer, place, read(), tma.LINEAR)
        else:
            land_reduced(machine, issuer, place, read(), reduction)

    what = f"a bulk load of {size} bytes"
    issue_load(machine, issuer, places, size, what, arrive)


def _sectors(address: int, size: int) -> int:
    """Sectors of a linear copy: each 128 bytes of it count for themselves (an H200 does so)."""
    end = address + size
    return sum(
        (min(first + TAG_BYTES, end) - 1) // SECTOR_BYTES - first // SECTOR_BYTES + 1
        for first in range(address, end, TAG_BYTES)
    )


def _check_size(machine: Machine, issuer: Issuer, size: int) -> None:
    if size % ALIGN:
        sentence = f"a bulk copy of {size} bytes: multiples of 16 only."
        raise refused(machine, issuer, "misaligned", sentence)


def _read_global(machine: Machine, issuer: Issuer, address: int, size: int) -> Array:
    first = _global_range(machine, issuer, address, size)
    arena, races, fast = machine.world.arena, machine.world_races, machine.global_space.fast
    watched = not races.history.untouched(first, first + size)
    if fast:
        agent = machine.clocks.copy if watched else None
        data = fast.read_chunks(tma.chunk_offsets(0, size, tma.LINEAR), first, issuer, agent)
        if data is not None:
            return data
    # Between written bytes lies what pads a struct: it may be copied with it.
    if (arena.state[first : first + size] == UNWRITTEN).reshape(-1, ALIGN).all(axis=1).any():
        sentence = "a copy reads memory that was never written."
        machine.report("uninitialised-read", sentence, issuer.site, issuer.place)
    if watched:
        unit = races.history.unit
        races.engine_read(slice(first // unit, (first + size) // unit), issuer, machine.clocks.copy)
    return arena.data[first : first + size].copy()


def _read_shared(machine: Machine, issuer: Issuer, address: int, size: int, agent: int) -> Array:
    cta, low = shared_range(machine, issuer, address, size, ALIGN)
    return fetch_shared(machine, issuer, cta, low, size, tma.LINEAR, agent)


def _global_range(machine: Machine, issuer: Issuer, address: int, size: int) -> int:
    """Arena offset of a linear copy's global side, checked."""
    first = address - GLOBAL_BASE
    state = machine.world.arena.state
    if address % ALIGN:
        sentence = f"global {address:#x} is not a multiple of 16."
        raise refused(machine, issuer, "misaligned", sentence)
    if not 0 <= first <= len(state) - size or not state[first : first + size].all():
        sentence = f"a copy of {size} bytes at global {address:#x} leaves its array."
        raise refused(machine, issuer, "out-of-bounds", sentence)
    return first


def store(
    machine: Machine, issuer: Issuer, to: int, source: int, size: int, reduction: Reduction | None
) -> None:
    """Copies bytes from shared memory to global memory, or reduces them into it."""
    _check_size(machine, issuer, size)
    if not size:
        return
    cta, low = shared_range(machine, issuer, source, size, ALIGN)
    first = _global_range(machine, issuer, to, size)
    tally = machine.execution.tally(issuer.site.number)
    tally.tma_sectors += _sectors(to, size)
    agent, base = machine.clocks.store + issuer.place % SLOTS, machine.arena_offset(cta, low)
    read = functools.partial(fetch_shared, machine, issuer, cta, low, size, tma.LINEAR, agent)
    write = functools.partial(_write, machine, issuer, first, reduction)
    issue_store(machine, issuer, "global memory", (base, base + size), read, write)


def _write(
    machine: Machine, issuer: Issuer, first: int, reduction: Reduction | None, data: Array
) -> None:
    races, fast = machine.world_races, machine.global_space.fast
    races.reports.issued(issuer)
    if fast and reduction is None:
        agent, chunks = races.output_agent(issuer), tma.chunk_offsets(0, len(data), tma.LINEAR)
        if fast.write_chunks(chunks, first, 0, data, issuer, agent):
            return
    unit = races.history.unit
    units = np.arange(first // unit, (first + len(data)) // unit)
    races.engine_output(units, issuer, reduces=reduction is not None)
    arena = machine.world.arena
    view = arena.data[first : first + len(data)]
    if reduction is not None:
        kind = f"u{reduction.element}"
        data = reduction.operation(view.copy().view(kind), data.view(kind)).view(np.uint8)
    view[...] = data
    arena.state[first : first + len(data)] = WRITTEN
