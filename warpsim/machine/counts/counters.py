"""What a launch did, for the kernel and for each source line."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from warpsim.machine.core.site import Site, Source
from warpsim.machine.counts.counter_names import OF_HARDWARE, named
from warpsim.machine.counts.tally import NOTHING, InstructionCount, Tally


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
        counts: Counter[str] = Counter()
        for count in self.instructions:
            counts[count.instruction.opcode.partition(".")[0]] += count.executed
        return dict(counts.most_common())

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


class ExecutionCounts:
    """How often each instruction ran, by its number, int64 [sites]."""

    def __init__(self, sites: int) -> None:
        self.warps = np.zeros(sites, np.int64)
        """Of guarded ones: in which the guard held for any lane."""
        self.lanes = np.zeros(sites, np.int64)
        self.issued = np.zeros(sites, np.int64)
        """Whatever the guard."""
        self.issued_lanes = np.zeros(sites, np.int64)
        self.indices = np.zeros(sites, np.int64)
        """The warps of a CTA that came to it, a bit each."""

    def take(self, other: ExecutionCounts) -> None:
        """Those of other CTAs too."""
        self.warps += other.warps
        self.lanes += other.lanes
        self.issued += other.issued
        self.issued_lanes += other.issued_lanes
        self.indices |= other.indices


def collect(sites: Sequence[Site], tallies: Mapping[int, Tally], runs: ExecutionCounts) -> Counters:
    """Counters from how often each instruction ran and from the tallies of memory instructions."""
    listing = sites[0].listing
    threads, requests, warps = runs.lanes.tolist(), runs.warps.tolist(), runs.indices.tolist()
    executed, lanes = requests, threads
    if listing in OF_HARDWARE:
        executed, lanes = runs.issued.tolist(), runs.issued_lanes.tolist()
    entered = [site.number if site.entered is None else site.entered for site in sites]
    counts = [
        InstructionCount(
            instruction=site,
            executed=executed[number],
            lanes=lanes[number],
            threads=threads[site.number],
            requests=requests[site.number],
            warps=warps[number],
            tally=tallies.get(site.number, NOTHING),
        )
        for site, number in zip(sites, entered, strict=True)
        if site.kind and executed[number]
    ]
    return Counters(listing=listing, instructions=tuple(counts))


def add_up(parts: Sequence[Counters]) -> Counters:
    """Counters of several launches together; an instruction that several executed is one."""
    counts: dict[int, InstructionCount] = {}
    for count in (instruction for part in parts for instruction in part.instructions):
        old = counts.get(id(count.instruction))
        counts[id(count.instruction)] = _add(old, count) if old else count
    return Counters(listing=parts[0].listing, instructions=tuple(counts.values()))


def _add(one: InstructionCount, other: InstructionCount) -> InstructionCount:
    tally = Tally()
    tally.take(one.tally)
    tally.take(other.tally)
    return InstructionCount(
        instruction=one.instruction,
        executed=one.executed + other.executed,
        lanes=one.lanes + other.lanes,
        threads=one.threads + other.threads,
        requests=one.requests + other.requests,
        warps=one.warps | other.warps,
        tally=tally,
    )
