"""Cost of a kernel's lines and instructions in an emulated launch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.evidence.emulate import ptx_accesses
from kernelexp.evidence.emulate.job import InstructionCost, LineCost, PtxAccess
from kernelexp.facts import accesses
from kernelexp.facts.accesses import Access
from kernelexp.facts.counters import EXECUTED, PTX, SECTORS
from kernelexp.model.arm import EmulatedLine
from warpsim.launch import Launch

if TYPE_CHECKING:
    from warpsim import Counters, Result

LINES_KEPT = 10
# What a line is judged by: what costs time in a kernel which waits for memory.
_COSTS = ("memory_l1_wavefronts_shared", *SECTORS)
COSTS = (*(f"{PTX}{name}" for name in _COSTS), *_COSTS)

_ADDRESS = re.compile(r"\s*/\*([0-9a-f]+)\*/")
"""Where a line of cuobjdump's listing says that its instruction is."""


def nonzero(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in counters.items() if value}


def dearest(root: Path, counters: Counters) -> tuple[EmulatedLine, ...]:
    """Those with most wavefronts and sectors, and the one with most instructions."""
    lines = [line for line in counters.lines if line.source]
    costly = [line for line in lines if any(line.counters.get(cost) for cost in COSTS)]
    costly.sort(key=lambda line: -sum(line.counters.get(cost, 0) for cost in COSTS))
    kept = costly[:LINES_KEPT]
    most = sorted(lines, key=lambda line: executed(line.counters))[-1:]
    kept += [line for line in most if line not in kept]
    return tuple(
        EmulatedLine(
            file=line.source.relative_to(str(root)).file,
            line=line.source.line,
            counters=nonzero(line.counters),
        )
        for line in kept
        if line.source
    )


def executed(counters: Mapping[str, int]) -> int:
    """Warp instructions that an emulation executed; it has one of these counters."""
    return sum(counters.get(name, 0) for name in EXECUTED.values())


def every_line(
    root: Path, launches: Sequence[Launch], results: Sequence[Result]
) -> tuple[LineCost, ...]:
    return tuple(
        LineCost(
            entry=entry,
            source=line.source.relative_to(str(root)),
            warps=line.warps,
            counters=nonzero(line.counters),
            accesses=_accesses(line.opcodes),
        )
        for entry, counters in _by_entry(launches, results).items()
        for line in counters.by_source()
    )


def _by_entry(launches: Sequence[Launch], results: Sequence[Result]) -> dict[str, Counters]:
    from warpsim import add_up

    of_entry: dict[str, list[Counters]] = {}
    for launch, result in zip(launches, results, strict=False):
        of_entry.setdefault(launch.entry, []).append(result.counters)
    return {entry: add_up(counters) for entry, counters in of_entry.items()}


def every_instruction(
    listing: Path, launches: Sequence[Launch], results: Sequence[Result]
) -> tuple[InstructionCost, ...]:
    text = listing.read_text("utf-8", "replace").splitlines()
    return tuple(
        InstructionCost(
            entry=entry,
            offset=int(match[1], 16),
            executed=instruction.executed,
            threads=instruction.lanes,
            wavefronts=instruction.tally.wavefronts,
            sectors=instruction.tally.sectors,
        )
        for entry, counters in _by_entry(launches, results).items()
        for instruction in counters.instructions
        if (match := _ADDRESS.match(text[instruction.instruction.line - 1]))
    )


def _accesses(opcodes: Mapping[str, int]) -> tuple[PtxAccess, ...]:
    counts: Counter[Access] = Counter()
    for opcode, count in opcodes.items():
        access = ptx_accesses.of_opcode(opcode)
        if access and access.kind in accesses.COMPARED:
            counts[access] += count
    return tuple(PtxAccess(what=x.kind, bits=x.bits, count=n) for x, n in counts.items())
