"""Evidence of kind `emulated`: what executing a variant on a CPU showed."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from kernelexp.model.measurement import ArrayResult

Isa: TypeAlias = Literal["ptx", "sass"]
"""An instruction set that the emulator executes."""


class EmulatedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake of a kernel that some schedule brought out."""

    name: str
    sentence: str
    where: str
    count: int


class EmulatedPrint(msgspec.Struct, frozen=True, kw_only=True):
    """One printf() of a kernel."""

    cta: int
    thread: int
    """Of the CTA."""
    text: str


class EmulatedLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one line of a kernel's source in a launch."""

    file: str
    line: int
    counters: dict[str, int]


class AccessWidths(msgspec.Struct, frozen=True, kw_only=True):
    """A source line whose memory instructions have other widths in SASS than in PTX."""

    file: str
    line: int
    what: str
    """`shared load`, `local store`, ..."""
    ptx: dict[int, int]
    """Instructions by their bits per lane."""
    sass: dict[int, int]
    """The same; empty where ptxas left none at this line."""
    ratio: float | None = None
    """Instructions of SASS for one of PTX; None where they do not move the same bytes, as where
    ptxas merged accesses of several lines, or loads what is not used."""


class EmulatedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a job of several."""

    entry: str
    ctas: int
    thread_instructions: int
    counters: dict[str, int]
    """Those that are not 0."""


class EmulatedEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of executing a variant on a CPU: kind `emulated`, the same on any machine."""

    size: str
    isa: Isa = "ptx"
    """What was executed: what nvcc made, or what ptxas made of it."""
    seed: int = 0
    """Of the inputs; early versions did not say it."""
    outputs: dict[str, str] = {}
    """The beginning of the SHA-256 of each array that the kernel wrote, after the first
    schedule."""
    schedules: tuple[str, ...] = ()
    arrays: tuple[ArrayResult, ...] = ()
    """Beside the reference: after the first schedule that left a wrong element, else after the
    first."""
    tolerance: dict[str, float] = {}
    """What the outputs were held to, by the names of problem.py's Tolerance."""
    doubts: tuple[str, ...] = ()
    """Why being right says little, as clauses: inputs that ignore their seed, or are all equal."""
    changed: tuple[str, ...] = ()
    """Inputs that the kernel wrote to."""
    differing: tuple[str, ...] = ()
    """Outputs that depend on the schedule."""
    varying: tuple[str, ...] = ()
    """The same where atomics or flags meet in an order that nothing decides: as they may."""
    findings: tuple[EmulatedFinding, ...] = ()
    warnings: tuple[EmulatedFinding, ...] = ()
    """Formal mistakes, which do not make a variant wrong."""
    failing: tuple[str, ...] = ()
    """Schedules that brought out a finding or another result than the first."""
    printed: tuple[EmulatedPrint, ...] = ()
    """What printf() showed under the first schedule: its first lines."""
    prints: int = 0
    """How often it printed."""
    hang: tuple[str, ...] = ()
    """Who waited for what when nothing could go on."""
    counters: dict[str, int] = {}
    """Of all launches: of PTX, named ptx__ and ncu's counter that counts the same on SASS; of SASS,
    by ncu's own name."""
    launches: tuple[EmulatedLaunch, ...] = ()
    """In their order, where there are several."""
    lines: tuple[EmulatedLine, ...] = ()
    """The lines with the most wavefronts and sectors."""
    opcodes: dict[str, int] = {}
    """Of SASS: executed warp instructions by opcode, as ncu's sass__inst_executed_per_opcode."""
    opcodes_with_modifiers: dict[str, int] = {}
    """The same by opcode with modifiers, as ncu's
    sass__inst_executed_per_opcode_with_modifier_all."""
    widths: tuple[AccessWidths, ...] = ()
    """Where the counters, which are of PTX, can't be the hardware's."""
    unsupported: str = ""
    """Why it could not be executed, such as the instruction that the emulator does not cover;
    nothing else is filled then."""
    thread_instructions: int = 0
    """Of one schedule."""
    seconds: float = 0.0
    """Of all schedules, on whatever machine emulated it first."""
    emulator: str = ""
    """Hash of the emulator: counters of two versions of it do not compare."""

    @property
    def finished(self) -> bool:
        """Whether nothing ended a launch early, so that its counters are of all of it."""
        return not (self.hang or self.findings)

    @property
    def is_right(self) -> bool:
        """Whether it was executed, and did what it should."""
        wrong = any(array.wrong for array in self.arrays)
        return bool(self.arrays) and self.finished and not (wrong or self.changed or self.differing)
