"""The state of one wave: what its warps act on. The scheduler moves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np

from warpsim.machine.checks.flags import Flags
from warpsim.machine.checks.neighbours import Neighbours
from warpsim.machine.checks.races import Races
from warpsim.machine.checks.shared_flags import SharedFlags
from warpsim.machine.checks.unchecked import Unchecked
from warpsim.machine.core.arrays import DTYPES, Array, Mask
from warpsim.machine.core.asynchronous import Engines, Issuer
from warpsim.machine.core.registers import Argument, SpecialRegister, SymbolAddress
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import Warps
from warpsim.machine.memory.arena import SCRATCH_BYTES, Arena
from warpsim.machine.memory.execution import Execution
from warpsim.machine.memory.history import History
from warpsim.machine.memory.layout import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_BITS,
)
from warpsim.machine.memory.residents import Cta, Residents
from warpsim.machine.wave.mbarrier import Mbarriers
from warpsim.machine.wave.spaces import (
    ClusterShared,
    Generic,
    Global,
    LocalMemory,
    Memory,
    ParameterSpace,
    SharedMemory,
)
from warpsim.machine.wave.specials import RESERVED_USED, special
from warpsim.machine.wave.tmem import TensorMemory
from warpsim.machine.wave.undefined import Undefined

T = TypeVar("T")

TMEM_BARRIER, TMEM_PARITY = 0x48, 0x50
"""In the reserved shared memory, of kernels with tensor memory."""

# Warps of a CTA whose reads of a word of shared memory are told apart.
READERS = 16


class WarpSet(Warps):
    """Warps that execute together: their rows of the register file, and the machine they act on."""

    def __init__(self, machine: Machine, first: int, count: int, step: int) -> None:
        places = np.arange(first, first + count * step, step)
        super().__init__(places, places % machine.resident)
        self.machine = machine
        self.slice = slice(first, first + count * step, step)
        self.R = machine.registers.rows(self.slice)
        self.predicated: dict[int, tuple[int, int, int]] = {}
        """Of guarded instructions, by their number: executions, warps with an active lane, active
        lanes."""
        self.native.indices = _indices(places // machine.resident)
        base = SCRATCH_BYTES + self.ctas * machine.shared_stride
        ranks = self.ctas % machine.cluster_size
        self.shared_base = base.astype(np.int64)[:, None]
        self.shared = self.shared_base - (ranks.astype(np.int64) << RANK_SHIFT)[:, None]
        lanes = places[:, None] * 32 + np.arange(32)
        self.local = SCRATCH_BYTES + lanes.astype(np.int64) * machine.execution.local.size

    def note(self, number: int, warps: int, lanes: int) -> None:
        """Counts an execution of a guarded instruction."""
        old = self.predicated.get(number, (0, 0, 0))
        self.predicated[number] = (old[0] + 1, old[1] + warps, old[2] + lanes)


def _indices(indices: Array) -> int:
    """A bit for each: the warps of a CTA that a set has, by their index in it."""
    return sum(1 << index for index in set(indices.tolist()))


Op: TypeAlias = Callable[[list[Array], Mask, WarpSet], None]
"""op(R, mask, warps): executes an instruction for the active lanes of a set of warps."""


class Machine(Residents):
    """Resident CTAs with fresh memories; instructions act on this."""

    def __init__(self, execution: Execution, first: int) -> None:
        super().__init__(execution, first)
        self.late = execution.late
        self.registers = execution.registers
        self.world = execution.world
        self._kind = Races if execution.judged else Unchecked
        warps, local = execution.warps, execution.local.size
        self.shared = Arena(self.resident * self.shared_stride)
        self.clocks = execution.clocks()
        self.local = Arena(warps * 32 * local)
        self.local.state[SCRATCH_BYTES:][: warps * 32 * local] = np.tile(
            execution.local.states, warps * 32
        )
        image = execution.image
        uses_reserved = image.has_tensor_memory or any(
            isinstance(slot, SpecialRegister) and slot.name in RESERVED_USED
            for _, slot in image.table.computed
        )
        self.layout.allocate(self.shared, len(self.ctas), reserved=uses_reserved)
        self.undefined = Undefined(self, execution.image.table, warps)
        self.neighbours = Neighbours(self, self.clocks)
        self.mbarriers = Mbarriers(self, self.clocks, self.shared, self.neighbours)
        if image.has_tensor_memory:
            self._keep_allocations()
        self.tmem = TensorMemory(self, self.clocks)
        self.engines = Engines(self.late, execution.chance, not execution.shuffle, self.changed)
        self.races = self._shared_races()
        self.world_races = self._global_races()
        within = SharedFlags(self.clocks, self.resident, self.shared_stride)
        self.flags = Flags(
            self.clocks,
            self.cluster_size,
            within if self.cluster_size == 1 else None,
            execution.history,
            execution.announced,
        )
        self.shared_space = SharedMemory(self.undefined, self, self.mbarriers, self.races)
        self.global_space = Global(self.undefined, self, self.world.arena, self.world_races)
        self.local_space = LocalMemory(self.undefined, self, self.local)
        self.spaces = self._spaces()
        self.sets: dict[tuple[int, int, int], WarpSet] = {}
        self._states: dict[type, object] = {}
        self.registers.poison()
        self._constants()

    def _keep_allocations(self) -> None:
        """How the CTAs of a pair tell each other of allocations of tensor memory: an mbarrier, and
        the parity of its next phase, which for the first CTA is one that is over.

        What the driver leaves there has not been published; this is what the code relies on.
        """
        for cta in self.ctas:
            self.mbarriers.provide(cta.place, TMEM_BARRIER, 1)
            at = self.arena_offset(cta.place, TMEM_PARITY)
            self.shared.data[at] = 1 - cta.rank % 2

    def _shared_races(self) -> Races:
        columns = min(self.warps_per_cta, READERS)
        unit = self.execution.image.shared_unit
        history = History(len(self.shared.data), unit, columns, (self.clocks.warps, self.resident))
        return self._kind(
            self, self.clocks, self.shared, history, "shared", self.shared_name, self.shared_object
        )

    def _global_races(self) -> Races:
        world, history = self.world, self.execution.history
        if self.clocks.now > 1:
            history.begin_wave(self.clocks.now, self.clocks.earlier)
        return self._kind(
            self, self.clocks, world.arena, history, "global", world.name_at, world.object_at
        )

    def _spaces(self) -> dict[str, Memory]:
        cluster = ClusterShared(self.undefined, self, self.mbarriers, self.races, self.neighbours)
        param = ParameterSpace(self.undefined, self, self.execution.parameters.arena)
        windows = {
            SHARED_WINDOW >> WINDOW_BITS: cluster,
            LOCAL_WINDOW >> WINDOW_BITS: self.local_space,
            PARAM_WINDOW >> WINDOW_BITS: param,
        }
        return {
            "shared": self.shared_space,
            "cluster": cluster,
            "local": self.local_space,
            "global": self.global_space,
            "param": param,
            "generic": Generic(self.global_space, windows),
        }

    def _constants(self) -> None:
        """Fills the slots whose values don't change during a wave."""
        for index, slot in self.execution.image.table.computed:
            array = self.registers.arrays[index]
            if isinstance(slot, SpecialRegister):
                array[...] = special(self, slot.name).astype(DTYPES[slot.bits])
            elif isinstance(slot, SymbolAddress):
                array[...] = self._address(slot) & (1 << slot.bits) - 1
            elif isinstance(slot, Argument):
                parameters = self.execution.parameters
                first = parameters.offsets[slot.name] + slot.offset
                octets = parameters.arena.data[first : first + slot.bits // 8]
                array[...] = octets.view(DTYPES[slot.bits])[0]
            else:
                words = self.execution.banks[slot.bank].view(DTYPES[slot.bits])
                array[...] = words[slot.offset * 8 // slot.bits]

    def _address(self, symbol: SymbolAddress) -> Array | int:
        execution, name, offset = self.execution, symbol.name, symbol.offset
        if name in self.layout.symbols:
            places = np.arange(execution.warps) % self.resident
            ranks = np.array([self.ctas[p].rank if p < len(self.ctas) else 0 for p in places])
            address = (ranks << RANK_SHIFT) + self.layout.symbols[name] + offset
            return address[:, None].astype(DTYPES[symbol.bits])
        if name in execution.local.symbols:
            return execution.local.symbols[name] + offset
        if name in execution.parameters.offsets:
            return PARAM_WINDOW + execution.parameters.offsets[name] + offset
        return self.world.symbol(name) + offset

    def warp_set(self, first: int, count: int, step: int) -> WarpSet:
        """The set of `count` warps, `step` places apart, from place `first`."""
        warps = self.sets.get((first, count, step))
        if warps is None:
            warps = self.sets[first, count, step] = WarpSet(self, first, count, step)
        return warps

    def state(self, kind: type[T]) -> T:
        """What a unit keeps during a wave, such as its barriers: made when first asked for."""
        state = self._states.get(kind)
        if state is None:
            state = self._states[kind] = kind()
        assert isinstance(state, kind)
        return state

    def value(self, slot: int, place: int) -> Array:
        """A slot's values in the 32 lanes of one warp."""
        return self.registers.arrays[slot][place]

    def issuer(self, place: int, lane: int, site: Site) -> Issuer:
        return Issuer(self.clocks, place, lane, site)

    def read_clock(self) -> int:
        self.execution.reads_clock = True
        self.execution.steps += 1
        return self.execution.steps

    def end(self) -> None:
        """The wave has ended: what it leaves to the next one of the launch."""
        self.undefined.finish(self.world.arena.state)
        self.execution.announced = self.flags.announced()
        self.execution.now = self.clocks.now + 1

    def end_cta(self, cta: Cta) -> None:
        """All warps of a CTA have exited: what it leaves behind."""
        cta.exited = self.any_ended = self.ended[cta.place] = True
        findings = self.execution.findings
        held = self.tmem.allocated.get(cta.place)
        if held:
            columns = sum(held.values())
            findings.add(
                "tmem-not-freed",
                f"CTA {cta.number} ended with {columns} columns of tensor memory allocated here.",
                self.tmem.sites[cta.place, min(held)],
                cta=cta.number,
            )
        self.neighbours.end(cta)
        self.mbarriers.end(cta.place)
        base = self.arena_offset(cta.place, 0)
        for pending in self.engines.pending:
            if any(base <= first < base + self.shared_stride for first, _ in pending.touches):
                # CUTLASS and DeepGEMM don't wait for their last stores: they are seen to be done.
                findings.add(
                    "exit-with-pending-store" if pending.outgoing else "exit-with-pending-copy",
                    f"CTA {cta.number} ended before this was waited for: {pending.describe()}.",
                    pending.site,
                    cta=cta.number,
                )


def guarded(op: Op, slot: int, negated: bool, number: int) -> Op:
    """An instruction for the lanes for which its guard holds; it counts them."""

    def act(R: list[Array], m: Mask, warps: WarpSet) -> None:
        # A copy: the instruction may write its own guard before its other destinations.
        on = ~R[slot] if negated else R[slot].copy()
        if m is not True:
            on = on & m
        count = int(np.count_nonzero(on))
        if count == on.size:
            warps.note(number, warps.count, count)
            op(R, True, warps)
        elif count:
            warps.note(number, int(np.count_nonzero(on.any(axis=1))), count)
            op(R, on, warps)
        else:
            warps.note(number, 0, 0)

    return act


def each_warp(act: Callable[[Machine, int], None]) -> Op:
    """Acts for each warp, which it gives by its place."""

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for place in warps.warps.tolist():
            act(warps.machine, place)

    return op


def each_thread(site: Site, act: Callable[[Machine, Issuer, list[Array], int, int], None]) -> Op:
    """Acts for each active thread: `act(machine, issuer, R, row, lane)`."""

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        machine = warps.machine
        for row, place, lane in warps.each_lane(m):
            act(machine, Issuer(machine.clocks, place, lane, site), R, row, lane)

    return op
