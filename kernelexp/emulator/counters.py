"""What a launch did, under ncu's metric names, for the kernel and for each source line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kernelexp.emulator.decode import SKIP
from kernelexp.emulator.isa.classes import classify
from kernelexp.emulator.ptx.syntax import Instruction, Source

if TYPE_CHECKING:
    from kernelexp.emulator.machine.access import Cost
    from kernelexp.emulator.machine.machine import Machine


@dataclass(slots=True)
class Tally:
    """Sums of one memory instruction."""

    accesses: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    tags: int = 0
    tma_sectors: int = 0
    operand_wavefronts: int = 0

    def add(self, cost: Cost) -> None:
        self.accesses += 1
        self.wavefronts += cost.wavefronts
        self.ideal_wavefronts += cost.ideal_wavefronts
        self.sectors += cost.sectors
        self.ideal_sectors += cost.ideal_sectors
        self.tags += cost.tags


class InstructionCount(msgspec.Struct, frozen=True, kw_only=True):
    """One PTX instruction's totals over a launch."""

    instruction: Instruction
    kind: str
    """Its class: "global load", "tmem load", "alu", ..."""
    executed: int
    """Warp instructions with at least one active lane."""
    lanes: int
    """Active lanes of these."""
    tally: Tally


class LineCounters(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one source line of the kernel's own folder, with what it calls elsewhere."""

    source: Source | None
    counters: dict[str, int]


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a launch."""

    kernel: dict[str, int]
    lines: tuple[LineCounters, ...]
    instructions: tuple[InstructionCount, ...]


NOTES: dict[str, str] = {
    "smsp__inst_executed": "PTX instructions: ptxas fuses, expands and moves; compare between "
    "variants, not with ncu",
    "sass__inst_executed_shared_loads": "as PTX spells them: ptxas may merge scalar accesses of "
    "unrolled loops, and adds a few hundred a launch for tcgen05.alloc",
    "sass__inst_executed_shared_stores": "as for shared loads",
    "memory_l2_theoretical_sectors_global": "true sectors; ncu shows 0 for 32-byte stores "
    "(st.global.v8)",
    "memory_l1_wavefronts_shared": "from the addresses; the hardware counter adds arbitration",
}
"""Where PTX-level figures and ncu's differ by nature."""


def collect(machine: Machine, executed: dict[int, int], lanes: dict[int, int]) -> Counters:
    """Counters from how often each instruction ran and from the tallies of memory instructions."""
    counts = []
    for number, ins in enumerate(machine.instructions):
        if executed.get(number) and ins.opcode != SKIP:
            counts.append(
                InstructionCount(
                    instruction=ins,
                    kind=classify(ins.opcode),
                    executed=executed[number],
                    lanes=lanes[number],
                    tally=machine.tallies.get(number, Tally()),
                )
            )
    own: dict[Source | None, Source | None] = {}
    lines: dict[tuple[str, int], list[InstructionCount]] = {}
    for count in counts:
        source = count.instruction.source
        if source not in own:
            own[source] = source.own() if source else None
        line = own[source]
        lines.setdefault((line.file, line.line) if line else ("", 0), []).append(count)
    return Counters(
        kernel=named(counts),
        lines=tuple(
            LineCounters(
                source=own[group[0].instruction.source],
                counters=named(group),
            )
            for _, group in sorted(lines.items())
        ),
        instructions=tuple(counts),
    )


_EXECUTED = {
    "sass__inst_executed_global_loads": ("global load",),
    "sass__inst_executed_global_stores": ("global store",),
    "sass__inst_executed_shared_loads": ("shared load", "matrix load"),
    "sass__inst_executed_shared_stores": ("shared store", "matrix store"),
    "sass__inst_executed_local_loads": ("local load",),
    "sass__inst_executed_local_stores": ("local store",),
    "smsp__sass_inst_executed_op_tmem_ldt": ("tmem load",),
    "smsp__sass_inst_executed_op_utcmma": ("utcmma",),
    "smsp__inst_executed_op_tma_ld": ("tma load",),
    "smsp__inst_executed_op_tma_st": ("tma store",),
    "smsp__inst_executed_op_wgmma": ("wgmma",),
    "smsp__inst_executed_op_mma": ("mma",),
    "smsp__inst_executed_op_barrier": ("barrier",),
    "smsp__inst_executed_op_mbarrier": ("mbarrier",),
    "smsp__inst_executed_op_ldgsts": ("cp.async",),
    "smsp__inst_executed_op_shfl": ("shuffle",),
    "smsp__inst_executed_op_branch": ("branch",),
    "smsp__inst_executed_op_atom": ("atomic",),
}
_GLOBAL = ("global load", "global store", "atomic", "cp.async")
_SHARED = ("shared load", "shared store", "matrix load", "matrix store", "atomic")


def named(counts: Iterable[InstructionCount]) -> dict[str, int]:
    """Sums of instruction counts under ncu's names."""
    counts = list(counts)
    values = {"smsp__inst_executed": sum(c.executed for c in counts)}
    values["smsp__thread_inst_executed"] = sum(c.lanes for c in counts)
    for name, kinds in _EXECUTED.items():
        values[name] = sum(c.executed for c in counts if c.kind in kinds)
    shared = [c.tally for c in counts if c.kind in _SHARED]
    world = [c.tally for c in counts if c.kind in _GLOBAL]
    tallies = [c.tally for c in counts]
    values["memory_l1_wavefronts_shared"] = sum(t.wavefronts for t in shared)
    values["memory_l1_wavefronts_shared_ideal"] = sum(t.ideal_wavefronts for t in shared)
    for store, name in (("load", "ld"), ("store", "st")):
        kind = [c.tally for c in counts if c.kind in (f"shared {store}", f"matrix {store}")]
        conflicts = sum(t.wavefronts - t.ideal_wavefronts for t in kind)
        values[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{name}"] = conflicts
        requests = sum(c.executed for c in counts if c.kind == f"global {store}")
        values[f"l1tex__t_requests_pipe_lsu_mem_global_op_{name}"] = requests
        sectors = sum(c.tally.sectors for c in counts if c.kind == f"global {store}")
        values[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{name}"] = sectors
    values["memory_l2_theoretical_sectors_global"] = sum(t.sectors for t in world)
    values["memory_l2_theoretical_sectors_global_ideal"] = sum(t.ideal_sectors for t in world)
    values["memory_l1_tag_requests_global"] = sum(t.tags for t in world)
    for tma, name in (("tma load", "ld"), ("tma store", "st")):
        sectors = sum(c.tally.tma_sectors for c in counts if c.kind == tma)
        values[f"l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_{name}"] = sectors
    values["l1tex__data_pipe_tc_wavefronts_mem_shared"] = sum(t.operand_wavefronts for t in tallies)
    return values
