"""Output of `inspect` on variants, for programs."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.judge.instructions import InstructionCounts, JudgedInstructions
from kernelexp.model.arm import Verdict


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


class ExecutedBarrier(msgspec.Struct, frozen=True, kw_only=True):
    """Barriers that an emulated launch passed at one line."""

    kind: str
    line: str
    warps: int
    times: float


class FullBarriers(msgspec.Struct, frozen=True, kw_only=True):
    """Barriers of a launch of the full problem, by kind."""

    ctas: int
    times: dict[str, float]
    how: str


class InspectedExecution(msgspec.Struct, frozen=True, kw_only=True):
    """The barriers that an emulated launch passed."""

    size: str
    ctas: int
    tiles: int
    lines: tuple[ExecutedBarrier, ...]
    full: FullBarriers | None


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
