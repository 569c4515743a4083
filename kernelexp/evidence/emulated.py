"""Arms that are built, executed on the CPU: evidence of kind `emulated`, once per build."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp import build, isolated, processes
from kernelexp.arm import AccessWidths, Arm, EmulatedEvidence, Isa
from kernelexp.errors import KernelexpError
from kernelexp.evidence import jobs, sass_lines, widths
from kernelexp.evidence.emulated_costs import InstructionCost, LineCost
from kernelexp.evidence.emulation_worker import Emulated, EmulationJob
from kernelexp.isolated import Limit
from kernelexp.limits import Limits
from kernelexp.model import form_of, spell_point
from kernelexp.problem import consult, files
from kernelexp.progress import OnProgress, Step
from kernelexp.schedule import USUAL, Schedule, first_schedules

Emulator: TypeAlias = Callable[[EmulationJob], Emulated]
"""Emulates one variant, from any thread."""
SIZE = "emulated"
BOTH: tuple[Isa, ...] = ("ptx", "sass")
_PACKAGE = Path(__file__).parent.parent
# Races and the like show in PTX alone, and counts are those of the first schedule.
_USUAL: dict[Isa, tuple[Schedule, ...]] = {
    "ptx": first_schedules(USUAL),
    "sass": first_schedules(1),
}


class How(msgspec.Struct, frozen=True, kw_only=True):
    """How to emulate, and what then counts against a variant."""

    size: str = SIZE
    schedules: tuple[Schedule, ...] | None = None
    """None: as many as are usual for what is executed."""
    pedantic: bool = False
    """Whether warnings make a variant wrong."""
    isas: tuple[Isa, ...] = BOTH
    """What to execute: PTX judges a variant if it is among them, SASS gives ncu's counts."""


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """An arm that is built, and which code of it to execute."""

    arm: Arm
    isa: Isa
    size: str
    schedules: tuple[Schedule, ...]


def take(
    root: Path,
    arms: Sequence[Arm],
    size: str,
    limits: Limits,
    on_progress: OnProgress | None = None,
    label: Callable[[Arm], str] = lambda arm: spell_point(arm.axes),
    schedules: Sequence[Schedule] | None = None,
    isa: Isa = "ptx",
) -> list[EmulatedEvidence | KernelexpError]:
    """take_each(), with the same code to execute for each arm."""
    wanted = [want(arm, isa, size, schedules) for arm in arms]
    return take_each(root, wanted, limits, on_progress, label)


def want(
    arm: Arm, isa: Isa, size: str = SIZE, schedules: Sequence[Schedule] | None = None
) -> Execution:
    """What to execute of an arm, under the usual schedules unless others are named.

    Of a kernel that came as a cubin, which has no PTX, its SASS in any case.
    """
    usual = _USUAL["ptx"] if is_cubin(arm) else _USUAL[isa]
    isa = "sass" if is_cubin(arm) else isa
    chosen = usual if schedules is None else tuple(schedules)
    return Execution(arm=arm, isa=isa, size=size, schedules=chosen)


def is_cubin(arm: Arm) -> bool:
    """Whether it came as a cubin, and is judged by its SASS."""
    return form_of(arm.source) == "cubin"


def take_each(
    root: Path,
    wanted: Sequence[Execution],
    limits: Limits,
    on_progress: OnProgress | None = None,
    label: Callable[[Arm], str] = lambda arm: spell_point(arm.axes),
    emulator: Emulator | None = None,
    slots: int | None = None,
) -> list[EmulatedEvidence | KernelexpError]:
    """Executes each in a process of its own, as many at once as there are cores; or `slots` at
    once by `emulator`.

    The evidence is kept next to the build, and found there by a run with the same problem.py, the
    same emulator and the same schedules. What could not be emulated, through a fault of its
    problem.py or of this machine, has the error instead.
    """

    def one(each: Execution) -> EmulatedEvidence | KernelexpError:
        try:
            kept = _kept(root, each)
            own = label(each.arm)
            return kept or _emulate(root, each, limits, own, emulator or execute).evidence
        except KernelexpError as error:
            return error

    def changed(done: int, running: Sequence[Execution]) -> None:
        if on_progress:
            now = ", ".join(label(each.arm) for each in running[:1])
            on_progress(Step(phase="emulating", done=done, total=len(wanted), now=now))

    return processes.parallel(one, wanted, on_change=changed, workers=slots)


def find(
    root: Path,
    arm: Arm,
    size: str = SIZE,
    schedules: Sequence[Schedule] | None = None,
    isa: Isa = "ptx",
) -> EmulatedEvidence | None:
    """The evidence that is kept next to the build of an arm; None where there is none."""
    return _kept(root, want(arm, isa, size, schedules))


def with_kept(root: Path, arm: Arm) -> Arm:
    """The arm with what is kept next to its build of executing its PTX and its SASS."""
    sass = None if is_cubin(arm) else find(root, arm, isa="sass")
    return msgspec.structs.replace(arm, emulated=find(root, arm), emulated_sass=sass)


def lines(
    root: Path, arm: Arm, size: str, limits: Limits, label: str, isa: Isa = "ptx"
) -> tuple[LineCost, ...]:
    """What every line cost in the emulation that take() took, or takes now.

    Empty where it could not be executed. Kept next to the build, and not in records, which have
    the dearest lines only.
    """
    wanted = want(arm, isa, size)
    kept = build.kept(*_place(root, wanted, "lines"))
    if kept is not None:
        return msgspec.json.decode(kept, type=tuple[LineCost, ...])
    return _emulate(root, wanted, limits, label, execute).lines


def instructions(
    root: Path, arm: Arm, size: str, limits: Limits, label: str
) -> tuple[InstructionCost, ...]:
    """The cost of every executed SASS instruction, kept and taken as in lines()."""
    wanted = want(arm, "sass", size)
    kept = build.kept(*_place(root, wanted, "instructions"))
    if kept is not None:
        return msgspec.json.decode(kept, type=tuple[InstructionCost, ...])
    return _emulate(root, wanted, limits, label, execute).instructions


def _place(root: Path, wanted: Execution, what: str = "emulated") -> tuple[Path, str]:
    arm = wanted.arm
    folder, digest = build.artefacts(root, arm.identity).cubin.parent, _digest(root, arm.kernel)
    if wanted.schedules != _USUAL[wanted.isa]:
        named = "; ".join(map(str, wanted.schedules))
        digest = hashlib.sha256(f"{digest}: {named}".encode()).hexdigest()
    kind = what if wanted.isa == "ptx" else f"{what}-{wanted.isa}"
    return folder, f"{kind}-{wanted.size}-{digest[:12]}.json"


def _kept(root: Path, wanted: Execution) -> EmulatedEvidence | None:
    kept = build.kept(*_place(root, wanted))
    return None if kept is None else msgspec.json.decode(kept, type=EmulatedEvidence)


def _emulate(
    root: Path, wanted: Execution, limits: Limits, label: str, emulator: Emulator
) -> Emulated:
    arm, isa = wanted.arm, wanted.isa
    before = files.digests(root, arm.kernel)
    whole = Limit(name="emulation", seconds=limits.emulation_s, of=label)
    problem = consult.limit(limits.problem_s)
    job = jobs.emulation(root, arm, wanted.size, problem, whole, wanted.schedules, isa)
    kinds = ("lines", "emulated") if isa == "ptx" else ("lines", "instructions", "emulated")
    places = {what: _place(root, wanted, what) for what in kinds}
    found = emulator(job)
    files.refuse_changes(root, arm.kernel, before, f"while {label} was emulated")
    evidence = msgspec.structs.replace(
        found.evidence,
        emulator=version(),
        widths=_widths(root, arm, found.lines) if isa == "ptx" else (),
    )
    parts = {"lines": found.lines, "instructions": found.instructions, "emulated": evidence}
    for what, place in places.items():
        build.keep(*place, msgspec.json.encode(parts[what]))
    return msgspec.structs.replace(found, evidence=evidence)


def _widths(root: Path, arm: Arm, lines: Sequence[LineCost]) -> tuple[AccessWidths, ...]:
    if arm.build is None:
        return ()
    made = build.artefacts(root, arm.identity)
    entries = (arm.build.entry, *arm.build.others)
    sass = [each for entry in entries for each in sass_lines.read(made.cubin, made.sass, entry)]
    return widths.compare(lines, sass)


def execute(job: EmulationJob) -> Emulated:
    """Emulates in a process of its own on this machine."""
    worker, where = "kernelexp.evidence.emulation_worker", f"variants/{job.kernel}/problem.py"
    return isolated.call(worker, job, Emulated, where, (job.problem_limit, job.emulation_limit))


def _digest(root: Path, kernel: str) -> str:
    """Of what the evidence depends on besides the PTX: problem.py, its checks, the emulator."""
    found = sorted((_PACKAGE / "problem").glob("*.py"))
    found += [
        _PACKAGE / f"{name}.py"
        for name in ("dtypes", "launch", "lineinfo", "places", "results", "schedule", "tensors")
    ]
    own = (
        "emulated_costs",
        "emulation_worker",
        "instructions",
        "line_table",
        "sass_lines",
        "widths",
    )
    found += [Path(__file__).with_name(f"{name}.py") for name in own]
    return _hash(found, f"{version()} {files.digests(root, kernel)}")


@functools.cache
def version() -> str:
    """Hash of the emulator, as evidence has it."""
    folder = _PACKAGE / "emulator"
    return _hash(sorted([*folder.rglob("*.py"), *folder.rglob("*.[ch]pp")]))


def _hash(paths: Sequence[Path], start: str = "") -> str:
    digest = hashlib.sha256(start.encode())
    for file in paths:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
