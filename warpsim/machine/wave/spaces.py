"""State spaces: an address and a warp set to bytes, checked and counted on the way."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from warpsim import compiled
from warpsim.machine.checks.neighbours import Neighbours
from warpsim.machine.checks.races import Races
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import Astray, BadLanes
from warpsim.machine.core.marks import LOADED, Origin
from warpsim.machine.core.warps import Warps
from warpsim.machine.counts.access import AccessCost, AccessKind, global_cost, shared_cost
from warpsim.machine.memory.arena import BARRIER, CONSTANT, OUTSIDE, SCRATCH_BYTES, UNWRITTEN, Arena
from warpsim.machine.memory.execution import Execution
from warpsim.machine.memory.layout import (
    GLOBAL_BASE,
    OFFSET_MASK,
    RANK_SHIFT,
    SHARED_RESERVED,
    WINDOW_BITS,
)
from warpsim.machine.memory.residents import Residents
from warpsim.machine.wave.fast_access import Bounds, FastAccess, LocalAccess
from warpsim.machine.wave.mbarrier import Mbarriers
from warpsim.machine.wave.undefined import Undefined

_UNWRITABLE = np.zeros(256, bool)
_UNWRITABLE[[OUTSIDE, CONSTANT, BARRIER]] = True


def _fast(races: Races, bounds: Bounds, execution: Execution) -> FastAccess:
    counts, follows = execution.counted, execution.follows
    return FastAccess(races, bounds, execution.tally, counts=counts, follows=follows)


class Memory(ABC):
    """Loads and stores by address."""

    @abstractmethod
    def parts(self, address: Array, m: Mask) -> list[tuple[Space, Array, Mask]]:
        """(space, address in it, lanes) of an access."""

    @abstractmethod
    def load(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        """[n, 32] of `element`-byte values, with an axis of `elements` if there are more."""

    @abstractmethod
    def store(
        self, warps: Warps, address: Array, values: Array, access: AccessKind, m: Mask
    ) -> None: ...


class Space(Memory):
    """Loads and stores of one state space."""

    name = ""
    polled = ""
    """Of which memory polls are noted: "shared", "global" or none."""

    def __init__(self, undefined: Undefined, residents: Residents, arena: Arena) -> None:
        self.undefined = undefined
        self.residents = residents
        self.arena = arena
        self.fast: FastAccess | None = None
        """What does the accesses that nothing is wrong with, if there is compiled code."""

    def parts(self, address: Array, m: Mask) -> list[tuple[Space, Array, Mask]]:
        return [(self, address, m)]

    @abstractmethod
    def offsets(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        """Arena offsets of every lane's access (0 for inactive lanes), checked for bounds."""

    def cost(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> AccessCost | None:
        return None

    def within(
        self,
        warps: Warps,
        address: Array,
        access: AccessKind,
        m: Mask,
        check: Callable[[Array, Mask], None] = lambda offsets, m: None,
    ) -> tuple[Array, Mask] | None:
        """Arena offsets of an access and its lanes, without those that there is a finding about:
        they load poison and store nothing. None if no lane is left."""
        strays: list[Astray] = []
        while True:
            try:
                offsets = self.offsets(warps, address, access, m)
                for stray in strays:
                    offsets = np.where(stray.lanes, stray.offsets, offsets)
                check(offsets, m)
            except Astray as stray:
                strays.append(stray)
            except BadLanes as bad:
                m = ~bad.lanes if m is True else m & ~bad.lanes
                if not m.any():
                    return None
            else:
                return offsets, m

    def load(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        fast = None if self.fast is None else self.fast.load(warps, address, access, m)
        if fast is not None:
            return fast

        def check(offsets: Array, m: Mask) -> None:
            if not self.arena.readable(offsets, access.size):
                self._unreadable(warps, offsets, access, m, load=True)

        placed = self.within(warps, address, access, m, check)
        if placed is None:
            return self.arena.gather(np.zeros(address.shape, int), access.element, access.elements)
        offsets, m = placed
        self.read(warps, offsets, access, m)
        self.count(warps, offsets, access, m)
        return self.arena.gather(offsets, access.element, access.elements)

    def store(
        self, warps: Warps, address: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        if self.fast is not None and not self.undefined.storing:
            if self.fast.store(warps, address, values, access, m):
                return

        def check(offsets: Array, m: Mask) -> None:
            self.writable(warps, offsets, access, m)

        placed = self.within(warps, address, access, m, check)
        if placed is not None:
            self.written(warps, placed[0], values, access, placed[1])
            self._put(warps, placed[0], values, access, placed[1])

    def deposit(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        """A store, but for the race check."""
        self.writable(warps, offsets, access, m)
        self._put(warps, offsets, values, access, m)

    def _put(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        self.count(warps, offsets, access, m)
        at, data = (offsets, values) if m is True else (offsets[m], values[m])
        self.arena.scatter(at, data, access.element, access.elements)
        if self.undefined.storing:
            state, into_global = self.arena.state, self.name == "global"
            self.undefined.store(offsets, access.element, m, state, into_global)

    def update_check(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """What an atomic update of these offsets is checked for and counted as."""
        self.writable(warps, offsets, access, m)
        if not self.arena.readable(offsets, access.size):
            self._unreadable(warps, offsets, access, m)
        self.written(warps, offsets, offsets, access, m)
        if self.polled:
            self.residents.polls.note(self.polled, warps, offsets, access, m)
        self.count(warps, offsets, access, m)

    def writable(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        state = self.arena.state
        last = _UNWRITABLE[state[offsets + (access.size - 1)]]
        # Objects begin at multiples of 8 bytes: a longer access may end beyond one.
        if last.any() or (access.size > 8 and _UNWRITABLE[state[offsets]].any()):
            self._unwritable(warps, offsets, access, m)

    def count(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        execution = self.residents.execution
        counted = access.counted and execution.counted
        cost = self.cost(warps, offsets, access, m) if counted else None
        if cost is not None:
            execution.tally(access.site.number).add(cost)
            if execution.patterns is not None and self.name in ("shared", "global"):
                spent = cost.wavefronts + cost.sectors
                shown = self.shown(warps, offsets)
                execution.patterns.note(self.name, shown, access, m, spent)

    def on_barrier(self, offsets: Array, access: AccessKind) -> None:
        """Told of stores to mbarriers."""

    def read(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """Told of every load; most spaces need not know."""
        return

    def written(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        """Told of every store, before it; most spaces need not know."""
        return

    # Faults

    def aligned(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> None:
        """Fails for arena offsets that are no multiples of an access's size."""
        if access.size > 1:
            wrong = (address & (access.size - 1)) != 0
            if wrong.any() and (m is True or (wrong & m).any()):
                where = wrong if m is True else wrong & m
                self.fail(
                    "misaligned",
                    f"is not a multiple of {access.size}",
                    warps,
                    self.shown(warps, address),
                    access,
                    where,
                )

    def fail(
        self, name: str, what: str, warps: Warps, address: Array, access: AccessKind, wrong: Array
    ) -> None:
        self.accuse(name, what, warps, address, access, wrong)
        raise self.residents.execution.fault(wrong)

    def accuse(
        self,
        name: str,
        what: str,
        warps: Warps,
        address: Array,
        access: AccessKind,
        wrong: Array,
        *,
        survived: bool = False,
    ) -> None:
        """The finding about the first of some lanes."""
        row, lane = (int(index[0]) for index in np.nonzero(wrong))
        value = int(np.broadcast_to(address, wrong.shape)[row, lane])
        place = int(warps.warps[row])
        verb, way = ("store", "to") if access.store else ("load", "from")
        who = self.residents.thread_name(32 * place + lane)
        byte = self.residents.byte_at(self.name, value) if name != "out-of-bounds" else ""
        at = f"{self.name} address {value:#x}{byte and f' ({byte})'}"
        sentence = f"{verb} by {who} {way} {at} {what}."
        self.residents.report(name, sentence, access.site, place, survived=survived)

    def leave(
        self,
        warps: Warps,
        address: Array,
        access: AccessKind,
        wrong: Array,
        memory: str = "every object",
    ) -> None:
        """Fails for an access outside of `memory`; the object that it just misses is named."""
        first = int(np.broadcast_to(address, wrong.shape)[wrong][0])
        what = f"({access.size} bytes) is outside {memory}{self.beside(first)}"
        self.fail("out-of-bounds", what, warps, address, access, wrong)

    def beside(self, address: int) -> str:
        """`, 4 bytes past the end of x (64 bytes)`, where that is known."""
        return ""

    def inside(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> Array:
        """The states of the bytes of an access, [..., size]; fails where it leaves every object."""
        states = self.arena.state[offsets[..., None] + np.arange(access.size)]
        outside = (states == OUTSIDE).any(axis=-1)
        if outside.any():
            outside = outside if m is True else outside & m
            self.leave(warps, self.shown(warps, offsets), access, outside)
        return states

    def _unreadable(
        self, warps: Warps, offsets: Array, access: AccessKind, m: Mask, *, load: bool = False
    ) -> None:
        states = self.inside(warps, offsets, access, m)
        if not self.residents.execution.follows:
            return
        octets = states == UNWRITTEN
        if access.used is not None:
            octets = octets & (access.used >> np.arange(access.size) & 1).astype(bool)
        if access.swapped:
            octets = octets & octets.all(axis=-1, keepdims=True)
        unwritten = octets.any(axis=-1)
        if not unwritten.any():
            return
        row, lane = (int(index[0]) for index in np.nonzero(unwritten))
        address = int(self.shown(warps, offsets)[row, lane])
        place, loaded = int(warps.warps[row]), LOADED.index(self.name)
        origin = Origin(loaded, access.site.number, place, lane, address)
        octets = octets.reshape(*offsets.shape, access.elements, -1)
        if load and self.undefined.load(access.site, warps, octets, origin):
            return
        sentence = f"{self.undefined.sentence(origin)}."
        self.residents.report("uninitialised-read", sentence, access.site, origin.place)

    def _unwritable(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        state = self.arena.state[offsets + (access.size - 1)]
        if not ((state == OUTSIDE) | (state == CONSTANT)).any():
            self.on_barrier(offsets[..., None] + np.arange(0, access.size, 8), access)
            return
        constant, addresses = state == CONSTANT, self.shown(warps, offsets)
        if constant.any():
            self.fail("read-only", "is constant", warps, addresses, access, constant)
        self.leave(warps, addresses, access, state == OUTSIDE)

    def shown(self, warps: Warps, offsets: Array) -> Array:
        """Arena offsets as the addresses that the program used."""
        return offsets


class Global(Space):
    """Global memory, and constants, which lie in it."""

    name = polled = "global"

    def __init__(
        self, undefined: Undefined, residents: Residents, arena: Arena, races: Races
    ) -> None:
        super().__init__(undefined, residents, arena)
        self.races = races
        if compiled.is_loaded():
            self.fast = _fast(races, self._bounds, residents.execution)

    def _bounds(self, warps: Warps) -> tuple[Array, Array, int]:
        base = np.full(warps.count, -GLOBAL_BASE)
        return base, np.zeros_like(base), len(self.arena.data) - 64

    def read(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        if not access.coherent:
            self.races.stale(warps, offsets, access, m)
        if access.relaxed:
            self.residents.polls.note(self.polled, warps, offsets, access, m)
            self.races.observe(warps, offsets, access, m)
        else:
            self.races.read(warps, offsets, access, m)

    def written(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        self.races.write(warps, offsets, values, access, m)

    def offsets(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        off = address.astype(np.int64) - GLOBAL_BASE
        if m is not True:
            off = np.where(m, off, 0)
        self.aligned(warps, off, access, m)
        beyond = off.view(np.uint64) >= len(self.arena.data) - 64
        if beyond.any():
            self.leave(warps, address, access, beyond)
        return off

    def beside(self, address: int) -> str:
        return self.residents.execution.world.beside(address - GLOBAL_BASE)

    def cost(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> AccessCost:
        if self.fast is not None:
            return self.fast.cost(offsets, access, m)
        return global_cost(offsets, access.size, None if m is True else m)

    def shown(self, warps: Warps, offsets: Array) -> Array:
        return offsets + GLOBAL_BASE


class LocalMemory(Space):
    """Local memory: each thread's own."""

    name = "local"

    def __init__(self, undefined: Undefined, residents: Residents, arena: Arena) -> None:
        super().__init__(undefined, residents, arena)
        self.compiled: LocalAccess | None = None
        execution = residents.execution
        if compiled.is_loaded():
            self.compiled = LocalAccess(arena, execution.local.size, follows=execution.follows)

    def offsets(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        local = address.astype(np.int64)
        if m is not True:
            local = np.where(m, local, 0)
        self.aligned(warps, local + warps.local, access, m)
        beyond = local.view(np.uint64) >= self.residents.execution.local.size
        if beyond.any():
            self.leave(warps, address, access, beyond, "the thread's local memory")
        offsets: Array = local + warps.local
        return offsets if m is True else np.where(m, offsets, 0)

    def shown(self, warps: Warps, offsets: Array) -> Array:
        return offsets - warps.local


class SharedMemory(Space):
    """Shared memory of the own CTA and, through cluster addresses, of the cluster's CTAs.

    A shared-memory address is rank << 24 | offset, as mapa and the peer mask of cta_group::2 code
    (0xFEFFFFFF) take it to be.
    """

    name = polled = "shared"

    def __init__(
        self, undefined: Undefined, residents: Residents, mbarriers: Mbarriers, races: Races
    ) -> None:
        super().__init__(undefined, residents, races.arena)
        self.races = races
        self.mbarriers = mbarriers
        if compiled.is_loaded() and self.name == SharedMemory.name:
            self.fast = _fast(races, self._bounds, residents.execution)

    def _bounds(self, warps: Warps) -> tuple[Array, Array, int]:
        return warps.shared[:, 0], warps.shared_base[:, 0], self.residents.shared_limit

    def on_barrier(self, offsets: Array, access: AccessKind) -> None:
        self.mbarriers.overwrite(offsets, access.site)

    def offsets(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        off = address.astype(np.int64) + warps.shared
        if m is not True:
            off = np.where(m, off, 0)
        self.aligned(warps, off, access, m)
        inside = (off - warps.shared_base).view(np.uint64)
        beyond = inside >= self.residents.shared_limit
        if m is not True:
            beyond &= m
        if beyond.any():
            self.leave(warps, address, access, beyond, "the CTA's shared memory")
        return off

    def cost(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> AccessCost | None:
        mask = None if m is True else m
        if self.fast is not None:
            return self.fast.cost(offsets, access, m)
        return shared_cost(offsets, access.size, mask, pairs=access.pairs and not access.store)

    def shown(self, warps: Warps, offsets: Array) -> Array:
        return offsets - warps.shared

    def beside(self, address: int) -> str:
        execution = self.residents.execution
        if near := execution.layout.beside(address):
            return near
        dynamic = execution.launch.dynamic_smem_bytes
        of_launch = f", {dynamic:,} of them dynamic_smem_bytes of the launch" if dynamic else ""
        return f"; the CTA has {execution.layout.packed - SHARED_RESERVED:,} bytes{of_launch}"

    def leave(
        self,
        warps: Warps,
        address: Array,
        access: AccessKind,
        wrong: Array,
        memory: str = "every object",
    ) -> None:
        """Lanes that a card lets go on do so behind the others."""
        low, layout = np.broadcast_to(address, wrong.shape), self.residents.layout
        there = np.full(wrong.shape, -1)
        if self.name == SharedMemory.name:
            offsets, how = low[wrong].tolist(), access.store
            there[wrong] = [layout.on_card(x, access.size, store=how) for x in offsets]
        if (ending := wrong & (there < 0)).any():
            super().leave(warps, address, access, ending, memory)
        what = f"({access.size} bytes) is outside {memory}{self.beside(int(low[wrong][0]))}"
        self.accuse("out-of-bounds", what, warps, address, access, wrong, survived=True)
        raise Astray(wrong, there + warps.shared)

    def read(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        if access.relaxed:
            self.residents.polls.note(self.polled, warps, offsets, access, m)
            self.races.observe(warps, offsets, access, m)
        else:
            self.races.read(warps, offsets, access, m)

    def written(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        self.races.write(warps, offsets, values, access, m)


class ClusterShared(SharedMemory):
    """Shared memory by cluster address: any CTA of the cluster."""

    name = "cluster shared"

    def __init__(
        self,
        undefined: Undefined,
        residents: Residents,
        mbarriers: Mbarriers,
        races: Races,
        neighbours: Neighbours,
    ) -> None:
        super().__init__(undefined, residents, mbarriers, races)
        self.neighbours = neighbours

    def offsets(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        residents = self.residents
        off = residents.cluster_offsets(warps, address, access.site, m)
        if residents.cluster_size > 1:
            self._use(warps, off, access, m)
        self.aligned(warps, off, access, m)
        return off

    def cost(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> AccessCost | None:
        """Of the lanes that stay in their CTA: ncu counts no others."""
        remote = self._remote(warps, offsets) if self.residents.cluster_size > 1 else None
        if remote is not None and (remote.any() if m is True else (remote & m).any()):
            m = ~remote if m is True else ~remote & m
            if not m.any():
                return None
            access = _in_part(access)
        return super().cost(warps, offsets, access, m)

    def _remote(self, warps: Warps, offsets: Array) -> Array:
        """Which lanes access another CTA's memory."""
        ctas = (offsets - SCRATCH_BYTES) // self.residents.shared_stride
        elsewhere: Array = ctas != warps.ctas[:, None]
        return elsewhere

    def _use(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        remote = self._remote(warps, offsets)
        ctas = (offsets - SCRATCH_BYTES) // self.residents.shared_stride
        remote = remote if m is True else remote & m
        for row in np.flatnonzero(remote.any(axis=1)):
            for cta in set(ctas[row][remote[row]].tolist()):
                self.neighbours.use(int(warps.warps[row]), cta, access.site)

    def shown(self, warps: Warps, offsets: Array) -> Array:
        stride = self.residents.shared_stride
        cta, low = np.divmod(offsets - SCRATCH_BYTES, stride)
        return (cta % self.residents.cluster_size << RANK_SHIFT) + low

    def beside(self, address: int) -> str:
        return super().beside(address & OFFSET_MASK)


class ParameterSpace(Space):
    """Kernel parameters, by their offset."""

    name = "param"

    def offsets(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        off = address.astype(np.int64)
        off = off if m is True else np.where(m, off, 0)
        self.aligned(warps, off, access, m)
        return off


def _in_part(access: AccessKind) -> AccessKind:
    """An access of which other lanes are elsewhere: they keep lanes from sharing a phase."""
    return dataclasses.replace(access, pairs=False)


class Generic(Memory):
    """Generic addresses: each lane's window decides."""

    def __init__(self, world: Space, windows: dict[int, Space]) -> None:
        self.world = world
        self.windows = windows

    def parts(self, address: Array, m: Mask) -> list[tuple[Space, Array, Mask]]:
        """(space, address in it, mask of lanes) for each window in use."""
        address = address.astype(np.uint64, copy=False)
        window = address >> np.uint64(WINDOW_BITS)
        parts: list[tuple[Space, Array, Mask]] = []
        active = window if m is True else window[m]
        for number in np.unique(active):
            lanes: Array = window == number
            lanes = lanes if m is True else lanes & m
            space = self.windows.get(int(number), self.world)
            base = int(number) << WINDOW_BITS if int(number) in self.windows else 0
            parts.append((space, address - np.uint64(base), True if lanes.all() else lanes))
        return parts

    def load(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array:
        result: Array | None = None
        parts = self.parts(address, m)
        if len(parts) > 1:
            access = _in_part(access)
        for space, within, lanes in parts:
            values = space.load(warps, within, access, lanes)
            if result is None:
                result = values.copy()
            else:
                assert lanes is not True
                np.copyto(result, values, where=lanes if values.ndim == 2 else lanes[..., None])
        assert result is not None
        return result

    def store(
        self, warps: Warps, address: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        for space, within, lanes in self.parts(address, m):
            space.store(warps, within, values, access, lanes)
