"""Output of `inspect` for programs: every instruction count, and each barrier and loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.evidence.code.sass_flow import SassLoop
from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.facts import accesses
from kernelexp.facts.accesses import Access
from kernelexp.facts.counters import EXECUTED, PIPE
from kernelexp.judge.expectations import InstructionCounts, JudgedInstructions
from kernelexp.model.arm import Arm, Verdict
from kernelexp.services.inspection import InspectedExecution, Inspection, place
from warpsim.lineinfo import Source
from warpsim.tables.opcodes import PIPES


class InspectedAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions that move as many bits for a thread."""

    kind: str
    bits: int
    """For a thread; 0 where the instruction does not say."""
    sass: int
    in_loops: int
    ptx: int | None
    """Instructions of the PTX; None where it is not understood."""


class InspectedBarrier(msgspec.Struct, frozen=True, kw_only=True):
    """A barrier's instruction."""

    offset: int
    instruction: str
    loop: int
    """The number of its innermost loop; 0 for none."""
    lines: tuple[str, ...]
    """Its source line, and those that it was inlined at."""


class InspectedLoop(msgspec.Struct, frozen=True, kw_only=True, rename={"parent": "in"}):
    """A loop of the SASS."""

    loop: int
    parent: int
    """The loop around it; 0 for none."""
    depth: int
    line: str
    instructions: int
    polls: bool
    """It only waits for an mbarrier."""


class InspectedRepetition(msgspec.Struct, frozen=True, kw_only=True):
    """An instruction that a source line became several times."""

    line: str
    instruction: str
    loop: int
    copies: int


class InspectedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One variant; one that is not built has only the first two."""

    variant: str
    refused: Verdict | None
    code: dict[str, float] | UnsetType = UNSET
    accesses: tuple[InspectedAccess, ...] | UnsetType = UNSET
    counts: InstructionCounts | UnsetType = UNSET
    barriers: tuple[InspectedBarrier, ...] | UnsetType = UNSET
    executed: InspectedExecution | UnsetType | None = UNSET
    loops: tuple[InspectedLoop, ...] | UnsetType = UNSET
    repeated: tuple[InspectedRepetition, ...] | UnsetType = UNSET
    pipes: dict[str, int] | UnsetType = UNSET
    executed_instructions: dict[str, int] | UnsetType | None = UNSET
    """Of emulated SASS, by opcode with modifiers; None where it was not executed."""
    executed_pipes: dict[str, int] | UnsetType | None = UNSET
    """The same by ncu's counters of pipes, and all."""


class InspectedCondition(JudgedInstructions, frozen=True, kw_only=True):
    """The outcome of a condition of --expect for one variant."""

    variant: str


class Inspected(msgspec.Struct, frozen=True, kw_only=True):
    """Variants, and how they differ from the first."""

    variants: tuple[InspectedVariant, ...]
    same_sass_as_first: tuple[bool, ...]
    """For each after the first of those that are built."""
    expected: tuple[InspectedCondition, ...]


Judged = Sequence[tuple[str, JudgedInstructions]]
"""Conditions of --expect, by the label of their variant."""
BARRIER_OPCODES = frozenset(
    """BAR SYNCS WARPSYNC WARPGROUP UCGABAR_ARV UCGABAR_WAIT UTCBAR ARRIVES LDGDEPBAR DEPBAR MEMBAR
    FENCE""".split()
)
_REPEATED = frozenset({"tensor", "tc", "tma", "tmem", "fma", "fp64", "fp16", "xu", "lsu"})
"""Pipes whose instructions tell how often a line was unrolled."""
_NOT_REPEATED = frozenset("IMAD VIADD S2R MEMBAR FENCE".split())
_POLLS = 8
"""Instructions of a loop that does nothing but wait, at most."""


def variants(inspections: Sequence[Inspection], judged: Judged, top: int) -> Inspected:
    """All that was inspected; `top`: how many repeated lines of each, 0 for all."""
    built = [inspection for inspection in inspections if inspection.arm.build]
    return Inspected(
        variants=tuple(_variant(inspection, top) for inspection in inspections),
        same_sass_as_first=tuple(is_same(built[0], inspection) for inspection in built[1:]),
        expected=tuple(
            InspectedCondition(variant=label, **msgspec.structs.asdict(instructions))
            for label, instructions in judged
        ),
    )


def _variant(inspection: Inspection, top: int) -> InspectedVariant:
    if inspection.arm.build is None:
        return InspectedVariant(variant=inspection.label, refused=inspection.arm.refused)
    return InspectedVariant(
        variant=inspection.label,
        refused=inspection.arm.refused,
        code=size(inspection),
        accesses=_accesses(inspection),
        counts=inspection.counts(),
        barriers=tuple(
            InspectedBarrier(
                offset=i.offset,
                instruction=i.text,
                loop=inspection.loop(i),
                lines=tuple(str(frame) for frame in i.source.frames()) if i.source else (),
            )
            for i in inspection.code
            if i.opcode in BARRIER_OPCODES
        ),
        executed=inspection.executed,
        loops=_loops(inspection),
        repeated=tuple(
            InspectedRepetition(line=place(source), instruction=mnemonic, loop=loop, copies=count)
            for (source, mnemonic, loop), count in repeated(inspection)[: top or None]
        ),
        pipes=inspection.arm.build.pipes,
        executed_instructions=inspection.executed_by_mnemonic() if inspection.costs else None,
        executed_pipes=executed_pipes(inspection.arm) if inspection.arm.counted else None,
    )


def _accesses(inspection: Inspection) -> tuple[InspectedAccess, ...]:
    sass = access_counts(inspection.code)
    looped = access_counts([i for i in inspection.code if inspection.loop(i)])
    ptx = inspection.ptx_accesses
    return tuple(
        InspectedAccess(
            kind=access.kind,
            bits=access.bits,
            sass=sass[access],
            in_loops=looped[access],
            ptx=None if ptx is None else ptx.get(access, 0),
        )
        for access in sorted(set(sass) | set(ptx or {}))
    )


def _loops(inspection: Inspection) -> tuple[InspectedLoop, ...]:
    return tuple(
        InspectedLoop(
            loop=loop.number,
            parent=loop.parent,
            depth=loop.depth,
            line=place(loop_line(inspection, loop)),
            instructions=sum(i.offset in loop.offsets for i in inspection.code),
            polls=polls(inspection, loop),
        )
        for loop in inspection.flow.loops
    )


def size(inspection: Inspection) -> dict[str, float]:
    """Figures of a build's code, by what they count."""
    assert inspection.arm.build is not None
    used = inspection.arm.build.resources
    spilled = {} if used.spill_bytes is None else {"bytes spilled": used.spill_bytes}
    return {
        "instructions": len(inspection.code),
        "bytes of code": used.sass_bytes,
        "registers per thread": used.registers,
        **spilled,
        "bytes of stack": used.stack_bytes,
        "loops": len(inspection.flow.loops),
    }


def is_same(first: Inspection, other: Inspection) -> bool:
    """Whether both have the same instructions at the same offsets."""
    return [(instruction.offset, instruction.text) for instruction in first.code] == [
        (instruction.offset, instruction.text) for instruction in other.code
    ]


def access_counts(code: Iterable[SassInstruction]) -> Counter[Access]:
    """Counts accesses to memory by kind and width."""
    generator = (accesses.of_sass(instruction.mnemonic) for instruction in code)
    return Counter(access for access in generator if access)


def repeated(inspection: Inspection) -> list[tuple[tuple[Source, str, int], int]]:
    """Counts how often a line, inlined at one place, has an instruction in one loop; most first."""
    counts = Counter(
        (instruction.source, instruction.mnemonic, inspection.loop(instruction))
        for instruction in inspection.code
        if instruction.source
        and instruction.pipe in _REPEATED
        and instruction.opcode not in _NOT_REPEATED
    )
    return [(key, count) for key, count in counts.most_common() if count > 1]


def loop_line(inspection: Inspection, loop: SassLoop) -> Source | None:
    """The line that goes back: of several branches that of the outermost code, the last one."""
    sources = {instruction.offset: instruction.source for instruction in inspection.code}
    known = [source for at in loop.branches if (source := sources.get(at))]
    return min(reversed(known), key=lambda item: len(item.frames()), default=None)


def polls(inspection: Inspection, loop: SassLoop) -> bool:
    """Whether it only waits for an mbarrier."""
    if len(loop.offsets) > _POLLS:
        return False
    names = [
        instruction.mnemonic
        for instruction in inspection.code
        if instruction.offset in loop.offsets
    ]
    return any(name.startswith("SYNCS.PHASECHK") for name in names)


def executed_pipes(arm: Arm) -> dict[str, int]:
    """The counters of an arm whose SASS was executed, and all its instructions."""
    assert arm.counted
    kept = (*(PIPE + pipe for pipe in PIPES), EXECUTED["sass"])
    return {name: arm.counted.counters[name] for name in kept if name in arm.counted.counters}
