"""State spaces: an address and a warp set to bytes, checked and counted on the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.findings import Fatal
from kernelexp.emulator.machine.access import Cost, global_cost, shared_cost
from kernelexp.emulator.machine.arena import CONSTANT, OUTSIDE, UNWRITTEN, Arena
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import WarpSet

# Where the windows of the generic address space lie. The numbers are ours; hardware's differ from
# driver to driver, and no program may depend on them.
SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 2 << 40
PARAM_WINDOW = 3 << 40
GLOBAL_BASE = 0x7F << 40
WINDOW_BITS = 40

# The first KB of a CTA's shared memory belongs to the system (CUDA C++ Programming Guide, "Shared
# memory" of compute capability 8.x and on: 1 KB reserved a block).
SHARED_RESERVED = 1024
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1


class Site:
    """A memory instruction: what its accesses are checked and counted under."""

    __slots__ = (
        "element",
        "elements",
        "instruction",
        "number",
        "pairs",
        "relaxed",
        "size",
        "space",
        "store",
    )

    def __init__(
        self,
        instruction: Instruction,
        number: int,
        space: str,
        element: int,
        elements: int,
        *,
        store: bool,
        relaxed: bool = False,
    ) -> None:
        self.instruction = instruction
        self.number = number
        self.space = space
        self.element = element
        self.elements = elements
        self.size = element * elements
        self.store = store
        self.relaxed = relaxed
        """volatile, relaxed, atomic: an access that cannot be half of a data race."""
        self.pairs = not store
        """Whether lanes with the same address may share a phase: loads but for ldmatrix."""


class Space(ABC):
    """Loads and stores of one state space."""

    name = ""

    def __init__(self, machine: Machine, arena: Arena) -> None:
        self.machine = machine
        self.arena = arena

    @abstractmethod
    def offsets(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        """Arena offsets of every lane's access (0 for inactive lanes), checked for bounds."""

    def cost(self, offsets: Array, site: Site, m: Any) -> Cost | None:
        return None

    def load(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        """[n, 32] of `element`-byte values, with an axis of `elements` if there are more."""
        offsets = self.offsets(warps, address, site, m)
        if not self.arena.readable(offsets, site.size):
            self._unreadable(warps, offsets, site, m)
        self.read(warps, offsets, site, m)
        self.count(offsets, site, m)
        return self.arena.gather(offsets, site.element, site.elements)

    def store(self, warps: WarpSet, address: Array, values: Array, site: Site, m: Any) -> None:
        offsets = self.offsets(warps, address, site, m)
        state = self.arena.state[offsets + (site.size - 1)]
        if ((state == OUTSIDE) | (state == CONSTANT)).any():
            self._unwritable(warps, offsets, site, m)
        self.written(warps, offsets, values, site, m)
        self.count(offsets, site, m)
        if m is not True:
            offsets, values = offsets[m], values[m]
        self.arena.scatter(offsets, values, site.element, site.elements)

    def update_check(self, warps: WarpSet, offsets: Array, site: Site, m: Any) -> None:
        """What an atomic update of these offsets is checked for and counted as."""
        state = self.arena.state[offsets + (site.size - 1)]
        if ((state == OUTSIDE) | (state == CONSTANT)).any():
            self._unwritable(warps, offsets, site, m)
        if not self.arena.readable(offsets, site.size):
            self._unreadable(warps, offsets, site, m)
        self.written(warps, offsets, offsets, site, m)
        self.count(offsets, site, m)

    def count(self, offsets: Array, site: Site, m: Any) -> None:
        cost = self.cost(offsets, site, m)
        if cost is not None:
            self.machine.tally(site.number).add(cost)

    def read(self, warps: WarpSet, offsets: Array, site: Site, m: Any) -> None:
        """Told of every load; most spaces need not know."""
        return

    def written(self, warps: WarpSet, offsets: Array, values: Array, site: Site, m: Any) -> None:
        """Told of every store, before it; most spaces need not know."""
        return

    # Faults

    def aligned(self, warps: WarpSet, address: Array, site: Site, m: Any) -> None:
        if site.size > 1:
            wrong = (address & (site.size - 1)) != 0
            if wrong.any() and (m is True or (wrong & m).any()):
                where = wrong if m is True else wrong & m
                self.fail(
                    "misaligned", f"is no multiple of {site.size}", warps, address, site, where
                )

    def fail(
        self, name: str, what: str, warps: WarpSet, address: Array, site: Site, wrong: Array
    ) -> None:
        row, lane = (int(index[0]) for index in np.nonzero(wrong))
        value = int(np.broadcast_to(address, wrong.shape)[row, lane])
        place = int(warps.warps[row])
        verb = "store to" if site.store else "load from"
        self.machine.found(
            name,
            f"{verb} {self.name} address {value:#x} (lane {lane}) {what}.",
            site.instruction,
            place,
        )
        raise Fatal

    def _unreadable(self, warps: WarpSet, offsets: Array, site: Site, m: Any) -> None:
        bytes_of = offsets[..., None] + np.arange(site.size)
        states = self.arena.state[bytes_of]
        outside = (states == OUTSIDE).any(axis=-1)
        if outside.any():
            what = f"({site.size} bytes) is outside every object"
            self.fail("out-of-bounds", what, warps, self.shown(warps, offsets), site, outside)
        unwritten = (states == UNWRITTEN).any(axis=-1)
        row, lane = (int(index[0]) for index in np.nonzero(unwritten))
        address = int(self.shown(warps, offsets)[row, lane])
        self.machine.found(
            "uninitialised-read",
            f"load from {self.name} address {address:#x} (lane {lane}), which nobody wrote.",
            site.instruction,
            int(warps.warps[row]),
        )

    def _unwritable(self, warps: WarpSet, offsets: Array, site: Site, m: Any) -> None:
        state = self.arena.state[offsets + (site.size - 1)]
        constant = state == CONSTANT
        name = "read-only" if constant.any() else "out-of-bounds"
        what = "is constant" if constant.any() else f"({site.size} bytes) is outside every object"
        wrong = constant if constant.any() else state == OUTSIDE
        self.fail(name, what, warps, self.shown(warps, offsets), site, wrong)

    def shown(self, warps: WarpSet, offsets: Array) -> Array:
        """Arena offsets as the addresses that the program used."""
        return offsets


class Global(Space):
    """Global memory, and constants, which lie in it."""

    name = "global"

    def offsets(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        off = address.astype(np.int64) - GLOBAL_BASE
        if m is not True:
            off = np.where(m, off, 0)
        self.aligned(warps, off, site, m)
        beyond = off.view(np.uint64) >= len(self.arena.data) - 64
        if beyond.any():
            what = f"({site.size} bytes) is outside every object"
            self.fail("out-of-bounds", what, warps, address, site, beyond)
        return off

    def cost(self, offsets: Array, site: Site, m: Any) -> Cost:
        return global_cost(offsets, site.size, None if m is True else m)

    def shown(self, warps: WarpSet, offsets: Array) -> Array:
        return offsets + GLOBAL_BASE


class Local(Space):
    """Local memory: each thread's own."""

    name = "local"

    def offsets(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        local = address.astype(np.int64)
        if m is not True:
            local = np.where(m, local, 0)
        self.aligned(warps, local, site, m)
        beyond = local.view(np.uint64) >= self.machine.local_size
        if beyond.any():
            what = f"({site.size} bytes) is outside the thread's local memory"
            self.fail("out-of-bounds", what, warps, address, site, beyond)
        offsets: Array = local + warps.local
        return offsets if m is True else np.where(m, offsets, 0)


class Shared(Space):
    """Shared memory of the own CTA and, through cluster addresses, of the cluster's CTAs.

    A shared-memory address is rank << 24 | offset, as mapa and the peer mask of cta_group::2 code
    (0xFEFFFFFF) take it to be.
    """

    name = "shared"

    def offsets(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        off = address.astype(np.int64) + warps.shared
        if m is not True:
            off = np.where(m, off, 0)
        self.aligned(warps, off, site, m)
        inside = (off - warps.shared_base).view(np.uint64)
        beyond = inside >= self.machine.shared_stride
        if m is not True:
            beyond &= m
        if beyond.any():
            what = "is outside the CTA's shared memory"
            self.fail("out-of-bounds", what, warps, address, site, beyond)
        return off

    def cost(self, offsets: Array, site: Site, m: Any) -> Cost:
        mask = None if m is True else m
        return shared_cost(offsets, site.size, mask, pairs=site.pairs)

    def shown(self, warps: WarpSet, offsets: Array) -> Array:
        shown: Array = offsets - warps.shared
        return shown

    def read(self, warps: WarpSet, offsets: Array, site: Site, m: Any) -> None:
        if not site.relaxed:
            self.machine.races.read(warps, offsets, site, m)

    def written(self, warps: WarpSet, offsets: Array, values: Array, site: Site, m: Any) -> None:
        self.machine.races.write(warps, offsets, values, site, m)


class Cluster(Shared):
    """Shared memory by cluster address: any CTA of the cluster."""

    name = "cluster shared"

    def offsets(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        off = self.machine.cluster_offsets(warps, address, site.instruction, m)
        self.aligned(warps, off, site, m)
        return off

    def shown(self, warps: WarpSet, offsets: Array) -> Array:
        stride = self.machine.shared_stride
        cta = (offsets - 64) // stride
        shown: Array = (cta % self.machine.cluster_size << RANK_SHIFT) + (offsets - 64) % stride
        return shown


class Generic:
    """Generic addresses: each lane's window decides."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def parts(self, address: Array, m: Any) -> list[tuple[Any, Array, Any]]:
        """(space, address in it, mask of lanes) for each window in use."""
        spaces = self.machine.windows
        window = address >> np.uint64(WINDOW_BITS)
        found = []
        active = window if m is True else window[m]
        for number in np.unique(active):
            lanes = window == number
            lanes = lanes if m is True else lanes & m
            space = spaces.get(int(number), self.machine.spaces["global"])
            base = int(number) << WINDOW_BITS if int(number) in spaces else 0
            found.append((space, address - np.uint64(base), True if lanes.all() else lanes))
        return found

    def load(self, warps: WarpSet, address: Array, site: Site, m: Any) -> Array:
        result: Array | None = None
        for space, within, lanes in self.parts(address, m):
            values = space.load(warps, within, site, lanes)
            if result is None:
                result = values.copy()
            else:
                np.copyto(result, values, where=lanes if values.ndim == 2 else lanes[..., None])
        assert result is not None
        return result

    def store(self, warps: WarpSet, address: Array, values: Array, site: Site, m: Any) -> None:
        for space, within, lanes in self.parts(address, m):
            space.store(warps, within, values, site, lanes)
