"""What a launch did, for the kernel and for each source line, by the counter's name.

SASS is what the hardware executes: what ncu counts too has ncu's name. PTX is not: ptxas merges,
drops and adds instructions, so that its counts are named ptx__ before ncu's name.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import msgspec

from kernelexp.emulator.machine.access import Cost
from kernelexp.emulator.machine.site import Site, Source


@dataclass(slots=True)
class Tally:
    """Sums of one memory instruction."""

    accesses: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    tags: int = 0
    conflicts: int = 0
    l1_sectors: int = 0
    requests: int = 0
    """To global memory."""
    tma_sectors: int = 0
    multicast_sectors: int = 0
    """Received by all CTAs of multicasts together."""
    operand_wavefronts: int = 0

    def add(self, cost: Cost, accesses: int = 1) -> None:
        """What so many accesses cost together."""
        self.accesses += accesses
        self.wavefronts += cost.wavefronts
        self.ideal_wavefronts += cost.ideal_wavefronts
        self.sectors += cost.sectors
        self.ideal_sectors += cost.ideal_sectors
        self.tags += cost.tags
        self.conflicts += cost.conflicts
        self.l1_sectors += cost.l1_sectors
        self.requests += cost.requests

    def load(self, sectors: int, multicast_to: int) -> None:
        """A bulk load of so many sectors; multicast_to: CTAs that it names, 0 without multicast."""
        if multicast_to:
            self.multicast_sectors += sectors * multicast_to
        else:
            self.tma_sectors += sectors


_NOTHING = Tally()
"""Of what makes no accesses: nobody adds to the tally of a count."""


class InstructionCount(msgspec.Struct, frozen=True, kw_only=True):
    """One instruction's totals over a launch."""

    instruction: Site
    executed: int
    """Warp instructions: of PTX those with at least one lane for which its guard holds, of SASS all
    (as ncu's inst_executed)."""
    lanes: int
    """Active lanes of these."""
    threads: int
    """Those of them for which the guard holds."""
    requests: int
    """Warp instructions with at least one lane for which its guard holds."""
    warps: int
    """The warps of a CTA that came to it, in any CTA, whatever its guard: bit 3 is warp 3."""
    tally: Tally


class LineCounters(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one source line of the kernel's own folder, with what it calls elsewhere."""

    source: Source | None
    counters: dict[str, int]


class SourceCounters(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of the instructions of one line, inlined at one place, that the same warps ran."""

    source: Source
    warps: int
    counters: dict[str, int]
    opcodes: dict[str, int]
    """How many of these instructions there are, by opcode."""


class Counters(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Counters of a launch: of those under other schedules than the first, few are asked for."""

    listing: str
    """What was executed: "PTX" or "SASS"."""
    instructions: tuple[InstructionCount, ...]

    @functools.cached_property
    def kernel(self) -> dict[str, int]:
        return named(self.instructions, self.listing)

    @functools.cached_property
    def lines(self) -> tuple[LineCounters, ...]:
        own: dict[Source | None, Source | None] = {}
        lines: dict[tuple[str, int], list[InstructionCount]] = {}
        for count in self.instructions:
            source = count.instruction.source
            if source not in own:
                own[source] = source.own() if source else None
            line = own[source]
            lines.setdefault((line.file, line.line) if line else ("", 0), []).append(count)
        return tuple(
            LineCounters(
                source=own[group[0].instruction.source], counters=named(group, self.listing)
            )
            for _, group in sorted(lines.items())
        )

    def by_opcode(self) -> dict[str, int]:
        """Executed warp instructions by opcode without modifiers, the most frequent first."""
        found: Counter[str] = Counter()
        for count in self.instructions:
            found[count.instruction.opcode.partition(".")[0]] += count.executed
        return dict(found.most_common())

    def by_source(self) -> list[SourceCounters]:
        """What has a line, by the line with all that it was inlined at, and by warps."""
        groups: dict[tuple[Source, int], list[InstructionCount]] = {}
        for count in self.instructions:
            if source := count.instruction.source:
                groups.setdefault((source, count.warps), []).append(count)
        return [
            SourceCounters(
                source=source,
                warps=warps,
                counters=named(group, group[0].instruction.listing),
                opcodes=dict(Counter(count.instruction.opcode for count in group)),
            )
            for (source, warps), group in groups.items()
        ]


class Runs:
    """How often each instruction ran, by its number."""

    def __init__(self) -> None:
        self.warps: dict[int, int] = {}
        """Of guarded ones: in which the guard held for any lane."""
        self.lanes: dict[int, int] = {}
        self.issued: dict[int, int] = {}
        """Whatever the guard."""
        self.issued_lanes: dict[int, int] = {}
        self.indices: dict[int, int] = {}
        """The warps of a CTA that came to it, a bit each."""


def collect(sites: Sequence[Site], tallies: Mapping[int, Tally], runs: Runs) -> Counters:
    """Counters from how often each instruction ran and from the tallies of memory instructions."""
    listing = sites[0].listing
    executed, lanes = runs.warps, runs.lanes
    if listing in _OF_HARDWARE:
        executed, lanes = runs.issued, runs.issued_lanes
    entered = [site.number if site.entered is None else site.entered for site in sites]
    counts = [
        InstructionCount(
            instruction=site,
            executed=executed[number],
            lanes=lanes[number],
            threads=runs.lanes.get(site.number, 0),
            requests=runs.warps.get(site.number, 0),
            warps=runs.indices[number],
            tally=tallies.get(site.number, _NOTHING),
        )
        for site, number in zip(sites, entered, strict=True)
        if site.kind and executed.get(number)
    ]
    return Counters(listing=listing, instructions=tuple(counts))


def add_up(parts: Sequence[Counters]) -> Counters:
    """Counters of several launches together; an instruction that several executed is one."""
    counts: dict[int, InstructionCount] = {}
    for count in (each for part in parts for each in part.instructions):
        old = counts.get(id(count.instruction))
        counts[id(count.instruction)] = _add(old, count) if old else count
    return Counters(listing=parts[0].listing, instructions=tuple(counts.values()))


def _add(one: InstructionCount, other: InstructionCount) -> InstructionCount:
    sums = {
        each.name: getattr(one.tally, each.name) + getattr(other.tally, each.name)
        for each in fields(Tally)
    }
    return InstructionCount(
        instruction=one.instruction,
        executed=one.executed + other.executed,
        lanes=one.lanes + other.lanes,
        threads=one.threads + other.threads,
        requests=one.requests + other.requests,
        warps=one.warps | other.warps,
        tally=Tally(**sums),
    )


PIPE = "sm__inst_executed_pipe_"
"""Begins ncu's counters of what each pipe executed."""
_OF_HARDWARE = frozenset({"SASS"})
"""The listings whose instructions are those that ncu counts."""

# By ncu's names. docs/emulator.md says for which kernels an H200 counted as is counted here on PTX.
_EXECUTED = {
    "sass__inst_executed_global_loads": ("global load",),
    "sass__inst_executed_global_stores": ("global store",),
    "sass__inst_executed_shared_loads": ("shared load",),
    "sass__inst_executed_shared_stores": ("shared store",),
    "smsp__inst_executed_op_ldsm": ("matrix load",),
    "smsp__inst_executed_op_shared_stsm": ("matrix store",),
    "sass__inst_executed_local_loads": ("local load",),
    "sass__inst_executed_local_stores": ("local store",),
    "smsp__sass_inst_executed_op_tmem_ldt": ("tmem load",),
    "smsp__sass_inst_executed_op_utcmma": ("utcmma",),
    "smsp__sass_inst_executed_op_shared_gmma": ("wgmma",),
    "smsp__inst_executed_op_tma_ld": ("tma load",),
    "smsp__inst_executed_op_tma_st": ("tma store", "tma reduction", "dshared copy"),
    "smsp__inst_executed_op_ldgsts": ("cp.async",),
}
# ptxas makes others of these: only of SASS are they ncu's.
_HARDWARE = {
    "smsp__inst_executed_op_shared_ld": ("shared load",),
    "smsp__inst_executed_op_shared_st": ("shared store",),
    "smsp__inst_executed_op_local_ld": ("local load",),
    "smsp__inst_executed_op_local_st": ("local store",),
}
# ncu has no metric of these, or ptxas makes other instructions of them.
_SPELLED = {
    "inst_executed_mma": ("mma",),
    "inst_executed_shuffle": ("shuffle",),
    "inst_executed_atomic": ("atomic",),
    "inst_executed_barrier": ("barrier",),
    "inst_executed_warp_barrier": ("warp barrier",),
    "inst_executed_mbarrier": ("mbarrier",),
    "inst_executed_mbarrier_wait": ("mbarrier wait",),
    "inst_executed_branch": ("branch",),
}
_READ = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op"
_WRITTEN = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op"
_GLOBAL = ("global load", "global store", "atomic", "cp.async")
_SHARED = ("shared load", "shared store", "matrix load", "matrix store", "atomic", "cp.async")
_GENERIC = ("global load", "global store")
"""Of generic addresses these may lead to shared memory."""


class _Kinds:
    """Instruction counts by kind."""

    def __init__(self, counts: Iterable[InstructionCount]) -> None:
        self.all = list(counts)
        self._of: dict[str, list[InstructionCount]] = {}
        for count in self.all:
            self._of.setdefault(count.instruction.kind, []).append(count)

    def of(self, *kinds: str) -> list[InstructionCount]:
        return [count for kind in kinds for count in self._of.get(kind, ())]

    def tallies(self, *kinds: str) -> list[Tally]:
        return [count.tally for count in self.of(*kinds)]


def named(counts: Iterable[InstructionCount], listing: str) -> dict[str, int]:
    """Sums of instruction counts by counter; `listing`, "PTX" or "SASS", decides on the names."""
    prefix, kinds = listing.lower() + "__", _Kinds(counts)
    ncu = "" if listing in _OF_HARDWARE else prefix
    whole = "smsp__" if listing in _OF_HARDWARE else prefix
    return {
        f"{whole}inst_executed": sum(c.executed for c in kinds.all),
        f"{whole}thread_inst_executed": sum(c.lanes for c in kinds.all),
        **(_hardware(kinds) if listing in _OF_HARDWARE else {}),
        **{ncu + name: value for name, value in _executed(kinds, _EXECUTED)},
        **{prefix + name: value for name, value in _executed(kinds, _SPELLED)},
        **{
            ncu + name: value
            for values in (_shared(kinds), _global(kinds), _tma(kinds))
            for name, value in values.items()
        },
    }


def _hardware(kinds: _Kinds) -> dict[str, int]:
    """What is counted of SASS alone."""
    pipes: Counter[str] = Counter()
    for count in kinds.all:
        for pipe in count.instruction.pipes:
            pipes[pipe] += count.executed
    return {
        "smsp__thread_inst_executed_pred_on": sum(c.threads for c in kinds.all),
        **{f"{PIPE}{pipe}": n for pipe, n in sorted(pipes.items())},
        **dict(_executed(kinds, _HARDWARE)),
    }


def _executed(kinds: _Kinds, wanted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    """How often instructions of these kinds were executed, by the counter's name.

    ncu's counters of hardware count an instruction whatever its guard; those of its own (sass__),
    where the guard holds for any lane.
    """
    for name, own in wanted.items():
        guarded = name.startswith("sass__")
        yield name, sum(c.requests if guarded else c.executed for c in kinds.of(*own))


def _shared(kinds: _Kinds) -> dict[str, int]:
    """Wavefronts; ncu counts those of wgmma's operands with the others, those of tcgen05.mma's
    apart."""
    shared = kinds.tallies(*_SHARED, *_GENERIC)
    wgmma = sum(t.operand_wavefronts for t in kinds.tallies("wgmma"))
    values = {
        "memory_l1_wavefronts_shared": sum(t.wavefronts for t in shared) + wgmma,
        "memory_l1_wavefronts_shared_ideal": sum(t.ideal_wavefronts for t in shared) + wgmma,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma": wgmma,
        "l1tex__data_pipe_tc_wavefronts_mem_shared": sum(
            t.operand_wavefronts for t in kinds.tallies("utcmma")
        ),
    }
    for verb, name in (("load", "ld"), ("store", "st")):
        own = (f"shared {verb}", f"matrix {verb}", f"global {verb}")  # generic ones too
        conflicts = sum(t.conflicts for t in kinds.tallies(*own))
        values[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{name}"] = conflicts
    return values


def _global(kinds: _Kinds) -> dict[str, int]:
    """A generic access is a request where it leads to global memory for any lane."""
    values = {}
    for name, own in (("ld", ("global load", "cp.async")), ("st", ("global store",))):
        tallies = kinds.tallies(*own)
        values[f"l1tex__t_requests_pipe_lsu_mem_global_op_{name}"] = sum(
            t.requests for t in tallies
        )
        values[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{name}"] = sum(
            t.l1_sectors for t in tallies
        )
    world = kinds.tallies(*_GLOBAL)
    values["memory_l2_theoretical_sectors_global"] = sum(t.sectors for t in world)
    values["memory_l2_theoretical_sectors_global_ideal"] = sum(t.ideal_sectors for t in world)
    values["memory_l1_tag_requests_global"] = sum(t.tags for t in world)
    return values


def _tma(kinds: _Kinds) -> dict[str, int]:
    """Sectors of bulk copies: what a CTA receives counts in each CTA of a multicast."""
    loads = kinds.tallies("tma load")
    multicast = sum(t.multicast_sectors for t in loads)
    return {
        f"{_READ}_tma_ld": sum(t.tma_sectors for t in loads) + multicast,
        f"{_READ}_tma_ld_dest_multicast": multicast,
        f"{_WRITTEN}_tma_st": sum(t.tma_sectors for t in kinds.tallies("tma store")),
        f"{_WRITTEN}_tma_red": sum(t.tma_sectors for t in kinds.tallies("tma reduction")),
    }
