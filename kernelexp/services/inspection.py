"""Code that the compiler made of variants, by instruction: built, and emulated if asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import extents, full_counts, prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.build import Artefacts
from kernelexp.evidence.code import sass_flow, sass_lines
from kernelexp.evidence.code.sass_flow import Flow
from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate import emulated, ptx_accesses
from kernelexp.evidence.emulate.job import InstructionCost
from kernelexp.evidence.emulate.roles import read_texts
from kernelexp.facts.accesses import Access
from kernelexp.facts.counters import PTX
from kernelexp.judge.expectations import InstructionCounts
from kernelexp.logs import profiles
from kernelexp.model.arm import Arm, faults, without_fault
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.model.record import Profile
from kernelexp.project import Project
from kernelexp.project.problem import consult
from warpsim.launch import main_launch
from warpsim.lineinfo import Source

BARRIERS = {
    "barrier": "barrier",
    "warp_barrier": "warp barrier",
    "mbarrier": "mbarrier",
    "mbarrier_wait": "mbarrier wait",
}
"""What the emulator counts, and what it is called; arrivals at barriers count as barriers."""


class ExecutedBarrier(msgspec.Struct, frozen=True, kw_only=True):
    """Barriers that an emulated launch passed at one line."""

    kind: str
    line: str
    warps: int
    """How many of a CTA's come to it."""
    times: float
    """Barriers in the whole grid: each is executed by all of its warps."""


class FullBarriers(msgspec.Struct, frozen=True, kw_only=True):
    """Barriers of a launch of the full problem, by kind."""

    ctas: int
    times: dict[str, float]
    how: str


class InspectedExecution(msgspec.Struct, frozen=True, kw_only=True):
    """The barriers that an emulated launch passed; counted on PTX, which has each barrier of the
    source, of a cubin on SASS."""

    size: str
    ctas: int
    tiles: int
    """0 where the problem does not state them."""
    lines: tuple[ExecutedBarrier, ...]
    full: FullBarriers | None
    """None where that is not known."""

    def times(self, kind: str) -> float:
        return sum(line.times for line in self.lines if line.kind == kind)


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """One variant."""

    label: str
    arm: Arm
    code: tuple[SassInstruction, ...] = ()
    """Without padding, and without what never executes; empty for a variant that is not built."""
    flow: Flow = Flow(loops=(), innermost={}, diverged=frozenset(), indirect=())
    ptx_accesses: dict[Access, int] | None = None
    """Accesses to memory in the PTX; None where it is not understood."""
    texts: dict[str, dict[int, str]] = {}
    """The lines of the sources, by path from the root and number."""
    executed: InspectedExecution | None = None
    """None where the variant was not emulated."""
    costs: dict[int, InstructionCost] = {}
    """What each instruction of `code` costs in an emulated launch, by offset; those that were not
    executed are absent. Empty where the SASS was not executed."""
    profile: Profile | None = None
    """The latest of the variant."""

    def loop(self, sass_instruction: SassInstruction) -> int:
        """The number of its innermost loop; 0 for none."""
        return self.flow.innermost.get(sass_instruction.offset, 0)

    def counts(self) -> InstructionCounts:
        return _count(self.code, self.flow)

    def executed_by_mnemonic(self) -> dict[str, int]:
        """Counts how often warps executed each opcode with its modifiers, most often first."""
        result: Counter[str] = Counter()
        for instruction in self.code:
            result[instruction.mnemonic] += self.times([instruction])
        return {name: count for name, count in result.most_common() if count}

    def times(self, code: Iterable[SassInstruction]) -> int:
        """Counts how often warps executed these instructions together."""
        own = (self.costs.get(instruction.offset) for instruction in code)
        return sum(cost.executed for cost in own if cost)


def look(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
) -> tuple[list[Inspection], list[KernelexpError]]:
    """The variants, and the faults of those that could not be examined.

    Without `emulate`, what was executed is counted where an emulation is kept.
    """
    prepare.refuse_programs(variants, "an inspection")
    arms = prepare.built(project, variants, session)
    if session.emulate:
        arms = prepare.emulated(project, arms, session)
    inspections = [_look(project, project.label(arm), arm, session) for arm in without_fault(arms)]
    return inspections, faults(arms)


def _look(project: Project, label: str, arm: Arm, session: Session) -> Inspection:
    if arm.build is None:
        return Inspection(label=label, arm=arm)
    root, entry = project.root, arm.build.entry
    arm = arm if arm.emulated else emulated.with_kept(root, arm)
    artefacts = build.artefacts(root, arm.identity)
    code, flow = _read(artefacts, entry)
    taken = arm.counted
    costs = emulated.instructions(root, arm, taken.size, session.limits, label) if taken else ()
    files = {
        frame.file
        for instruction in code
        if instruction.source
        for frame in instruction.source.frames()
    }
    return Inspection(
        label=label,
        arm=arm,
        code=code,
        flow=flow,
        ptx_accesses=_ptx_accesses(artefacts, entry),
        texts=read_texts(root, files),
        executed=_executed(project, label, arm, session),
        profile=profiles.latest(root, arm.kernel, arm.arch, arm.axes),
        costs={cost.offset: cost for cost in costs if cost.entry == entry},
    )


def _ptx_accesses(artefacts: Artefacts, entry: str) -> dict[Access, int] | None:
    """The accesses of an entry's PTX; None where there is no PTX, or it is not understood."""
    if artefacts.ptx is None:
        return None
    return ptx_accesses.count(artefacts.ptx.read_text("utf-8", "replace"), entry)


def counts(root: Path, arm: Arm) -> InstructionCounts:
    """The instructions of an arm that is built: what judge/expectations.py judges a gate by."""
    assert arm.build is not None
    return _count(*_read(build.artefacts(root, arm.identity), arm.build.entry))


def _read(artefacts: Artefacts, entry: str) -> tuple[tuple[SassInstruction, ...], Flow]:
    """The instructions that may execute, and the control flow of all."""
    every = sass_lines.read(artefacts.cubin, artefacts.sass, entry)
    code = tuple(
        instruction
        for instruction in every
        if not (instruction.is_padding or instruction.never_executes)
    )
    return code, sass_flow.analyse(every)


def _count(code: Sequence[SassInstruction], flow: Flow) -> InstructionCounts:
    """Counts instructions by opcode with modifiers, most frequent first."""
    every = Counter(instruction.mnemonic for instruction in code)
    in_loops = Counter(
        instruction.mnemonic for instruction in code if instruction.offset in flow.innermost
    )
    return InstructionCounts(every=dict(every.most_common()), in_loops=dict(in_loops.most_common()))


# ---- barriers that were executed -----------------------------------------------------------------


def _executed(
    project: Project, label: str, arm: Arm, session: Session
) -> InspectedExecution | None:
    shown = arm.emulated
    if shown is None or not shown.finished or shown.unsupported:
        return None
    size = shown.size
    every = emulated.lines(project.root, arm, size, session.limits, label)
    lines = [line_cost for line_cost in every if arm.build and line_cost.entry == arm.build.entry]
    # All sizes: what counts the full problem chooses another one among them.
    sizes = consult.consult(project.root, arm.kernel, timeout_s=session.limits.problem_s).sizes
    launches = extents.launches(project, arm, list(sizes), session.limits)
    (facts,) = launches.points
    passed = [
        (kind, line, count)
        for kind in BARRIERS
        for line in lines
        if (count := _counter(line.counters, kind)) and line.warps
    ]
    executed = InspectedExecution(
        size=size,
        ctas=math.prod(main_launch(facts.launch_of(size)).grid),
        tiles=facts.tiles.get(size, 0),
        lines=tuple(
            ExecutedBarrier(kind=kind, line=place(line.source), warps=warps, times=count / warps)
            for kind, line, count in passed
            for warps in (line.warps.bit_count(),)
        ),
        full=None,
    )
    alone = session.emulate and not shown.launches
    full = full_counts.count_full(project, arm, launches, session) if alone else None
    # Each has as many warps as in the emulated launch.
    warp_instructions = {
        kind: sum(count for own, _, count in passed if own == kind) for kind in BARRIERS
    }
    times = {
        kind: executed.times(kind) * _counter(full.counters, kind) / count
        for kind, count in warp_instructions.items()
        if full and count
    }
    if full is None or not times:
        return executed
    scaled = FullBarriers(ctas=full.extent.ctas, times=times, how=full.how)
    return msgspec.structs.replace(executed, full=scaled)


def place(source: Source | None) -> str:
    """A line of the kernel, after the line that its function was inlined at."""
    return source.place() if source else "-"


def _counter(counters: dict[str, int], kind: str) -> int:
    """Reads a counter of PTX, which has each barrier of the source, else of SASS."""
    name = f"inst_executed_{kind}"
    return counters.get(f"{PTX}{name}", 0) or counters.get(f"sass__{name}", 0)
