"""The state of one launch: resident CTAs, registers, memories, barriers, what is in flight."""

# NumPy's operators on arrays of any type are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kernelexp.emulator.counters import Tally
from kernelexp.emulator.decode import Program
from kernelexp.emulator.findings import Fatal, Findings
from kernelexp.emulator.machine.arena import SCRATCH_BYTES, UNWRITTEN, Arena
from kernelexp.emulator.machine.asynchronous import Engines
from kernelexp.emulator.machine.clocks import Clocks
from kernelexp.emulator.machine.flags import Flags
from kernelexp.emulator.machine.layout import GlobalLayout, Parameters, SharedLayout
from kernelexp.emulator.machine.mbarrier import Mbarrier, Mbarriers
from kernelexp.emulator.machine.races import Races
from kernelexp.emulator.machine.spaces import (
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_BITS,
    Cluster,
    Generic,
    Global,
    Local,
    Shared,
)
from kernelexp.emulator.machine.specials import special
from kernelexp.emulator.machine.tmem import TensorMemory
from kernelexp.emulator.machine.warps import WarpSet
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import DTYPES, Array, Key, RegisterFile
from kernelexp.launch import Launch, TensorMap

# Resident warps at once: bounds the register file (about 128 bytes a register and warp).
REGISTER_FILE_BYTES = 512 << 20
MAX_RESIDENT_WARPS = 2048


class Cta(msgspec.Struct):
    """A resident CTA."""

    number: int
    """%ctaid as one number, x fastest."""
    place: int
    """Index among the resident CTAs; those of a cluster follow each other by rank."""
    index: tuple[int, int, int]
    rank: int
    cluster: int
    live_warps: int
    exited: bool = False


class Machine:
    """One launch being executed. The scheduler moves warps; instructions act on this."""

    def __init__(
        self,
        program: Program,
        launch: Launch,
        arrays: Mapping[str, Array],
        unwritten: frozenset[str],
        chance: random.Random,
        late: bool,
    ) -> None:
        self.program = program
        self.launch = launch
        self.findings = Findings()
        self.chance = chance
        self.late = late
        self.tallies: dict[int, Tally] = {}
        self.cluster_size = int(np.prod(launch.cluster))
        self.threads = int(np.prod(launch.block))
        self.warps_per_cta = -(-self.threads // 32)
        self.grid_ctas = int(np.prod(launch.grid))
        self.layout = SharedLayout(program, launch)
        self.shared_stride = self.layout.stride
        self.local_size, self.local_symbols = self._locals()
        self.global_layout = GlobalLayout(program.module, arrays, unwritten)
        self.parameters = Parameters(program.function, launch, self.global_layout)
        self.resident = self._resident()
        self.registers = RegisterFile(
            program.slots, self.resident * self.warps_per_cta, self._constant
        )
        self.instructions = program.function.instructions
        self.steps = 0
        self.ctas: list[Cta] = []
        self.scheduler: Any = None

    def _locals(self) -> tuple[int, dict[str, int]]:
        size, places = 0, {}
        for variable in self.program.function.variables:
            if variable.space in ("local", "param"):
                size = -(-size // variable.align) * variable.align
                places[variable.name] = size
                size += variable.size
        return -(-size // 32) * 32, places

    def _resident(self) -> int:
        registers = len(self.program.slots.keys) * 128 * self.warps_per_cta
        most = min(
            REGISTER_FILE_BYTES // max(1, registers), MAX_RESIDENT_WARPS // self.warps_per_cta
        )
        clusters = max(1, most // self.cluster_size)
        return min(self.grid_ctas, clusters * self.cluster_size)

    def place_wave(self, first: int) -> int:
        """Makes CTAs [first, ...) resident with fresh memories; how many they are."""
        count = min(self.resident, self.grid_ctas - first)
        self.ctas = [self._cta(first + place, place) for place in range(count)]
        stride, warps = self.shared_stride, self.resident * self.warps_per_cta
        self.shared = Arena(self.resident * stride)
        self.clocks = Clocks(len(self.shared.data), self.program.shared_unit, warps)
        self.local = Arena(warps * 32 * self.local_size)
        self.local.allocate(SCRATCH_BYTES, warps * 32 * self.local_size, UNWRITTEN)
        for cta in self.ctas:
            self.layout.allocate(self.shared, SCRATCH_BYTES + cta.place * stride)
        self.mbarriers = Mbarriers(self.findings)
        self.tmem = TensorMemory(self, self.resident)
        self.engines = Engines(self.late, self.chance)
        self.races = Races(self)
        self.flags = Flags(self.clocks)
        self._spaces()
        self.groups: dict[Any, Any] = {}
        """What instructions keep for themselves: bulk and wgmma groups, allocations, ..."""
        self.serial = itertools.count()
        self.sets: dict[tuple[int, int], WarpSet] = {}
        self.registers.poison()
        self._specials()
        return count

    def _spaces(self) -> None:
        shared, local = Shared(self, self.shared), Local(self, self.local)
        world = Global(self, self.global_layout.arena)
        self.spaces: dict[str, Any] = {
            "shared": shared,
            "cluster": Cluster(self, self.shared),
            "local": local,
            "global": world,
            "param": self.parameters.space(self),
            "generic": Generic(self),
        }
        self.windows = {
            SHARED_WINDOW >> WINDOW_BITS: self.spaces["cluster"],
            LOCAL_WINDOW >> WINDOW_BITS: local,
            PARAM_WINDOW >> WINDOW_BITS: self.spaces["param"],
        }

    def _cta(self, number: int, place: int) -> Cta:
        # CTAs are numbered cluster by cluster, so that those of a cluster are neighbours.
        gx, gy, _ = self.launch.grid
        cx, cy, cz = self.launch.cluster
        cluster, rank = divmod(number, self.cluster_size)
        clusters_x, clusters_y = gx // cx, gy // cy
        base = (
            cluster % clusters_x * cx,
            cluster // clusters_x % clusters_y * cy,
            cluster // (clusters_x * clusters_y) * cz,
        )
        index = (base[0] + rank % cx, base[1] + rank // cx % cy, base[2] + rank // (cx * cy))
        linear = index[0] + gx * (index[1] + gy * index[2])
        return Cta(linear, place, index, rank, place // self.cluster_size, self.warps_per_cta)

    # Registers and warps. A warp's place is (warp of its CTA) * resident CTAs + CTA, so that warps
    # with one role in all CTAs are neighbours and run as one set.

    def warp_place(self, cta: int, warp: int) -> int:
        return warp * self.resident + cta

    def cta_of(self, place: int) -> Cta:
        return self.ctas[place % self.resident]

    def warp_of(self, place: int) -> int:
        return place // self.resident

    def _specials(self) -> None:
        for slot, key in enumerate(self.program.slots.keys):
            if key[0] in ("special", "symbol"):
                self.registers.arrays[slot][...] = self._value(key)

    def _constant(self, key: Key, warps: int) -> Array:
        return np.zeros((warps, 32), DTYPES[key[-1]])

    def _value(self, key: Key) -> Array | int:
        bits = key[-1]
        if key[0] == "special":
            return special(self, key[1]).astype(DTYPES[bits])
        _, name, offset, _ = key
        places = np.arange(self.resident * self.warps_per_cta) % self.resident
        if name in self.layout.symbols:
            ranks = np.array([self.ctas[p].rank if p < len(self.ctas) else 0 for p in places])
            address = (ranks << RANK_SHIFT) + self.layout.symbols[name] + offset
            return address[:, None].astype(DTYPES[bits])
        if name in self.local_symbols:
            return self.local_symbols[name] + offset
        if name in self.parameters.offsets:
            return PARAM_WINDOW + self.parameters.offsets[name] + offset
        return self.global_layout.symbol(name) + offset

    def warp_set(self, first: int, count: int) -> WarpSet:
        """The set of `count` warps from place `first`."""
        found = self.sets.get((first, count))
        if found is None:
            warps = np.arange(first, first + count)
            found = WarpSet(self.registers.rows(first, count), warps, warps % self.resident)
            base = SCRATCH_BYTES + found.ctas * self.shared_stride
            ranks = found.ctas % self.cluster_size
            found.machine = self
            found.shared_base = base.astype(np.int64)[:, None]
            found.shared = found.shared_base - (ranks.astype(np.int64) << RANK_SHIFT)[:, None]
            lanes = warps[:, None] * 32 + np.arange(32)
            found.local = SCRATCH_BYTES + lanes.astype(np.int64) * self.local_size
            self.sets[first, count] = found
        return found

    def value(self, slot: int, place: int) -> Array:
        """A slot's values in the 32 lanes of one warp."""
        row: Array = self.registers.arrays[slot][place]
        return row

    # Shared memory by address

    def cluster_offsets(self, warps: WarpSet, address: Array, ins: Instruction, m: Any) -> Array:
        """Arena offsets of cluster addresses; Fatal with a finding for one outside the cluster."""
        value = address.astype(np.int64)
        rank, low = value >> RANK_SHIFT, value & OFFSET_MASK
        wrong = (rank < 0) | (rank >= self.cluster_size) | (low >= self.shared_stride)
        wrong = wrong if m is True else wrong & m
        if wrong.any():
            row, lane = (int(i[0]) for i in np.nonzero(wrong))
            self.found(
                "out-of-bounds",
                f"cluster address {int(value[row, lane]):#x} (lane {lane}) lies in no CTA of the "
                f"cluster of {self.cluster_size}.",
                ins,
                int(warps.warps[row]),
            )
            raise Fatal
        cta = warps.ctas[:, None] // self.cluster_size * self.cluster_size + rank
        offsets: Array = SCRATCH_BYTES + cta * self.shared_stride + low
        return offsets if m is True else np.where(m, offsets, 0)

    def shared_offset(self, place: int, address: int, ins: Instruction) -> tuple[int, int, int]:
        """(arena offset, resident CTA, offset in it) of a shared or cluster address of a warp."""
        rank, low = address >> RANK_SHIFT, address & OFFSET_MASK
        if rank >= self.cluster_size or low >= self.shared_stride:
            self.found(
                "out-of-bounds",
                f"shared address {address:#x} is in no CTA of the cluster of {self.cluster_size}.",
                ins,
                place,
            )
            raise Fatal
        cta = self.cta_of(place).place // self.cluster_size * self.cluster_size + rank
        if self.ctas[cta].exited:
            self.found(
                "remote-cta-exited",
                f"shared address {address:#x} is in CTA {self.ctas[cta].number}, which has ended.",
                ins,
                place,
            )
        return self.arena_offset(cta, low), cta, low

    def arena_offset(self, cta: int, low: int) -> int:
        return SCRATCH_BYTES + cta * self.shared_stride + low

    def mbarrier(self, place: int, address: int, ins: Instruction) -> Mbarrier | None:
        offset, cta, low = self.shared_offset(place, address, ins)
        return self.mbarriers.find(offset, self.ctas[cta].number, low, ins)

    def shared_name(self, offset: int) -> str:
        cta, low = divmod(offset - SCRATCH_BYTES, self.shared_stride)
        return f"shared {low:#x} of CTA {self.ctas[cta].number}"

    def agent_name(self, agent: int) -> str:
        if agent in (self.clocks.copy, self.clocks.store):
            return "copy engine"
        if agent == self.clocks.tensor:
            return "tensor core"
        return f"warp {self.warp_of(agent)} of CTA {self.cta_of(agent).number}"

    # Reporting

    def tally(self, number: int) -> Tally:
        tally = self.tallies.get(number)
        if tally is None:
            tally = self.tallies[number] = Tally()
        return tally

    def found(self, name: str, sentence: str, ins: Instruction | None, place: int = -1) -> None:
        cta, warp = (-1, -1) if place < 0 else (self.cta_of(place).number, self.warp_of(place))
        self.findings.add(name, sentence, ins, cta=cta, warp=warp)

    def tensor_map(self, address: int) -> TensorMap | None:
        """The tensor map that lies at a generic or param address."""
        return self.parameters.maps.get(address & ((1 << WINDOW_BITS) - 1))

    def gone(self, place: int) -> int:
        """Lanes of a warp that have exited, or never existed."""
        lanes: int = self.scheduler.exited[place]
        return lanes

    def read_clock(self) -> int:
        self.steps += 1
        return self.steps

    def parts(self, space: str, address: Array, m: Any) -> list[tuple[Any, Array, Any]]:
        """(space, address in it, lanes) of an access that may be generic."""
        chosen = self.spaces[space]
        if isinstance(chosen, Generic):
            return chosen.parts(address, m)
        return [(chosen, address, m)]

    def end_cta(self, cta: Cta) -> None:
        """All warps of a CTA have exited: what it leaves behind."""
        cta.exited = True
        held = self.tmem.allocated.get(cta.place)
        if held:
            self.findings.add(
                "tmem-not-freed",
                f"CTA {cta.number} ended holding {sum(held.values())} columns of tensor memory.",
                cta=cta.number,
            )
        base = self.arena_offset(cta.place, 0)
        for pending in self.engines.pending:
            if any(base <= first < base + self.shared_stride for first, _ in pending.touches):
                self.findings.add(
                    "exit-with-pending-copy",
                    f"CTA {cta.number} ended before this was waited for: {pending.what}.",
                    pending.instruction,
                    cta=cta.number,
                )
