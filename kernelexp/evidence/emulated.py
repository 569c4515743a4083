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
from kernelexp.evidence.emulation_worker import Emulated, EmulationJob, LineCost
from kernelexp.isolated import Limit
from kernelexp.limits import Limits
from kernelexp.model import spell_point
from kernelexp.problem import consult, files
from kernelexp.progress import OnProgress, Step
from kernelexp.schedule import USUAL, Schedule, first_schedules

Emulator: TypeAlias = Callable[[EmulationJob], Emulated]
"""Emulates one variant, from any thread."""
SIZE = "emulated"
_PACKAGE = Path(__file__).parent.parent
_USUAL = first_schedules(USUAL)


class How(msgspec.Struct, frozen=True, kw_only=True):
    """How to emulate, and what then counts against a variant."""

    size: str = SIZE
    schedules: tuple[Schedule, ...] = _USUAL
    pedantic: bool = False
    """Whether warnings make a variant wrong."""
    isa: Isa = "ptx"


def take(
    root: Path,
    arms: Sequence[Arm],
    size: str,
    limits: Limits,
    on_progress: OnProgress | None = None,
    label: Callable[[Arm], str] = lambda arm: spell_point(arm.axes),
    schedules: Sequence[Schedule] = _USUAL,
    emulator: Emulator | None = None,
    slots: int | None = None,
    isa: Isa = "ptx",
) -> list[EmulatedEvidence | KernelexpError]:
    """Emulates each arm in a process of its own, as many at once as there are cores; or `slots` at
    once by `emulator`.

    The evidence is kept next to the build, and found there by a run with the same problem.py, the
    same emulator and the same schedules. An arm that could not be emulated, through a fault of its
    problem.py or of this machine, has the error instead.
    """

    def one(arm: Arm) -> EmulatedEvidence | KernelexpError:
        try:
            return _take(root, arm, size, limits, label(arm), schedules, emulator or execute, isa)
        except KernelexpError as error:
            return error

    def changed(done: int, running: Sequence[Arm]) -> None:
        if on_progress:
            now = ", ".join(map(label, running[:1]))
            on_progress(Step(phase="emulating", done=done, total=len(arms), now=now))

    return processes.parallel(one, arms, on_change=changed, workers=slots)


def find(
    root: Path,
    arm: Arm,
    size: str = SIZE,
    schedules: Sequence[Schedule] = _USUAL,
    isa: Isa = "ptx",
) -> EmulatedEvidence | None:
    """The evidence that is kept next to the build of an arm; None where there is none."""
    kept = build.kept(*_place(root, arm, size, schedules, isa=isa))
    return None if kept is None else msgspec.json.decode(kept, type=EmulatedEvidence)


def lines(root: Path, arm: Arm, size: str, limits: Limits, label: str) -> tuple[LineCost, ...]:
    """What every line cost in the emulation that take() took, or takes now.

    Empty where it could not be executed. Kept next to the build, and not in records, which have
    the dearest lines only.
    """
    kept = build.kept(*_place(root, arm, size, _USUAL, "lines"))
    if kept is not None:
        return msgspec.json.decode(kept, type=tuple[LineCost, ...])
    return _emulate(root, arm, size, limits, label, _USUAL, execute).lines


def _place(
    root: Path,
    arm: Arm,
    size: str,
    schedules: Sequence[Schedule],
    what: str = "emulated",
    isa: Isa = "ptx",
) -> tuple[Path, str]:
    folder, digest = build.artefacts(root, arm.identity).ptx.parent, _digest(root, arm.kernel)
    if tuple(schedules) != _USUAL:
        digest = hashlib.sha256(f"{digest}: {'; '.join(map(str, schedules))}".encode()).hexdigest()
    kind = what if isa == "ptx" else f"{what}-{isa}"
    return folder, f"{kind}-{size}-{digest[:12]}.json"


def _take(
    root: Path,
    arm: Arm,
    size: str,
    limits: Limits,
    label: str,
    schedules: Sequence[Schedule],
    emulator: Emulator,
    isa: Isa,
) -> EmulatedEvidence:
    if (kept := find(root, arm, size, schedules, isa)) is not None:
        return kept
    return _emulate(root, arm, size, limits, label, schedules, emulator, isa).evidence


def _emulate(
    root: Path,
    arm: Arm,
    size: str,
    limits: Limits,
    label: str,
    schedules: Sequence[Schedule],
    emulator: Emulator,
    isa: Isa = "ptx",
) -> Emulated:
    before = files.digests(root, arm.kernel)
    whole = Limit(name="emulation", seconds=limits.emulation_s, of=label)
    problem = consult.limit(limits.problem_s)
    job = jobs.emulation(root, arm, size, problem, whole, schedules, isa)
    places = {what: _place(root, arm, size, schedules, what, isa) for what in ("lines", "emulated")}
    found = emulator(job)
    files.refuse_changes(root, arm.kernel, before, f"while {label} was emulated")
    evidence = msgspec.structs.replace(
        found.evidence,
        emulator=_emulator(),
        widths=_widths(root, arm, found.lines) if isa == "ptx" else (),
    )
    for what, content in (("lines", found.lines), ("emulated", evidence)):
        build.keep(*places[what], msgspec.json.encode(content))
    return Emulated(evidence=evidence, lines=found.lines)


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
    own = ("emulation_worker", "instructions", "line_table", "sass_lines", "widths")
    found += [Path(__file__).with_name(f"{name}.py") for name in own]
    return _hash(found, f"{_emulator()} {files.digests(root, kernel)}")


@functools.cache
def _emulator() -> str:
    folder = _PACKAGE / "emulator"
    return _hash(sorted([*folder.rglob("*.py"), *folder.rglob("*.[ch]pp")]))


def _hash(paths: Sequence[Path], start: str = "") -> str:
    digest = hashlib.sha256(start.encode())
    for file in paths:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
