"""Arms that are built, executed on the CPU: evidence of kind `emulated`, once per build."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

import kernelexp
import warpsim
from kernelexp.evidence import build, jobs
from kernelexp.evidence.emulate.job import Emulated, EmulationJob, InstructionCost, LineCost
from kernelexp.model.arm import AccessWidths, Arm, EmulatedEvidence, Isa
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import form_of
from kernelexp.model.limits import Limits
from kernelexp.model.modelled import ModelledRun
from kernelexp.project.problem import consult, files
from kernelexp.system.disk import decode
from kernelexp.system.live import OnProgress, Step
from kernelexp.system.process import isolated, processes
from kernelexp.system.process.isolated import TimeLimit
from warpsim.schedule import USUAL, Schedule, first_schedules

if TYPE_CHECKING:
    from kernelexp.evidence.emulate.pattern_worker import Patterned

Emulator: TypeAlias = Callable[[EmulationJob], Emulated]
"""Emulates one variant, from any thread."""
WORKER = "kernelexp.evidence.emulate.emulation_worker"
SIZE = "emulated"
BOTH: tuple[Isa, ...] = ("ptx", "sass")
_PACKAGE = Path(kernelexp.__file__).parent
ROOMS = (
    "evidence/code",
    "evidence/emulate",
    "evidence/measure",
    "facts",
    "logs",
    "model",
    "project",
    "system",
)
"""Folders that hold every module of kernelexp which the worker imports; a test computes these."""
# Races and the like show in PTX alone, and counts are those of the first schedule.
_USUAL: dict[Isa, tuple[Schedule, ...]] = {
    "ptx": first_schedules(USUAL),
    "sass": first_schedules(1),
}


class EmulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an emulation, and what then counts against a variant."""

    size: str = SIZE
    schedules: tuple[Schedule, ...] | None = None
    """None: as many as are usual for what is executed."""
    pedantic: bool = False
    """Whether warnings make a variant wrong."""
    isas: tuple[Isa, ...] = BOTH
    """What to execute: PTX judges a variant if it is among them, SASS gives ncu's counts."""


def preload() -> None:
    """Has the process that executes variants import what it needs, and does not wait."""
    processes.preload(WORKER)


def is_cubin(arm: Arm) -> bool:
    """Whether it came as a cubin, and is judged by its SASS."""
    return form_of(arm.source) == "cubin"


def take(
    root: Path,
    wanted: Sequence[tuple[Arm, Isa]],
    size: str,
    limits: Limits,
    on_progress: OnProgress | None,
    label: Callable[[Arm], str],
    schedules: Sequence[Schedule] | None = None,
    emulator: Emulator | None = None,
    slots: int | None = None,
) -> list[EmulatedEvidence | KernelexpError]:
    """Executes code of each arm in a process of its own, as many at once as there are cores; or
    `slots` at once by `emulator`; under the usual schedules unless others are named.

    The evidence is kept next to the build, and found there by a run with the same problem.py, the
    same emulator and the same schedules. What could not be emulated, through a fault of its
    problem.py or of this machine, has the error instead.
    """

    # Twice as many as there are cores: three schedules in three processes share two cores evenly.
    share = max(1, 2 * len(os.sched_getaffinity(0)) // max(1, len(wanted)))

    def one(code: tuple[Arm, Isa]) -> EmulatedEvidence | KernelexpError:
        arm, isa = code
        try:
            if kept := find(root, arm, size, schedules, isa):
                return kept
            if slots is None:
                preload()  # meanwhile the compiled part of the emulator is made
            return _emulate(
                *(root, arm, isa, size, limits, label(arm), schedules),
                *(emulator or execute, share if slots is None else 1),
            ).evidence
        except KernelexpError as error:
            return error

    def changed(done: int, running: Sequence[tuple[Arm, Isa]]) -> None:
        if on_progress:
            now = ", ".join(f"{isa.upper()} of {label(arm)}" for arm, isa in running[:1])
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
    kept = _place(root, arm, isa, size, schedules).kept()
    return None if kept is None else decode(kept, EmulatedEvidence)


def with_kept(root: Path, arm: Arm) -> Arm:
    """The arm with what is kept next to its build of executing its PTX and its SASS."""
    sass = None if is_cubin(arm) else find(root, arm, isa="sass")
    return msgspec.structs.replace(arm, emulated=find(root, arm), emulated_sass=sass)


def lines(
    root: Path, arm: Arm, size: str, limits: Limits, label: str, isa: Isa = "ptx"
) -> tuple[LineCost, ...]:
    """Returns the cost of every line in the emulation that take() took, or takes it now.

    Empty where it could not be executed. Kept next to the build, and not in records, which have
    only the most expensive lines.
    """
    kept = kept_lines(root, arm, size, isa)
    if kept is not None:
        return kept
    return _emulate(root, arm, isa, size, limits, label).lines


def kept_lines(root: Path, arm: Arm, size: str, isa: Isa) -> tuple[LineCost, ...] | None:
    """The lines' costs where they were taken before; else None, and nothing is executed."""
    kept = _place(root, arm, isa, size).kept("lines")
    return None if kept is None else decode(kept, tuple[LineCost, ...])


def instructions(
    root: Path, arm: Arm, size: str, limits: Limits, label: str
) -> tuple[InstructionCost, ...]:
    """The cost of every executed SASS instruction, kept and taken as in lines()."""
    kept = kept_instructions(root, arm, size)
    if kept is not None:
        return kept
    return _emulate(root, arm, "sass", size, limits, label).instructions


def kept_instructions(root: Path, arm: Arm, size: str) -> tuple[InstructionCost, ...] | None:
    """The instructions' costs as taken before; else None, and nothing is executed."""
    kept = _place(root, arm, "sass", size).kept("instructions")
    return None if kept is None else decode(kept, tuple[InstructionCost, ...])


def patterns(root: Path, arm: Arm, isa: Isa, size: str = SIZE) -> Patterned | None:
    """The patterns of accesses that are kept next to the build of an arm; None without any."""
    from kernelexp.evidence.emulate.pattern_worker import Patterned  # it brings NumPy

    kept = _place(root, arm, isa, size).kept("patterns")
    return None if kept is None else decode(kept, Patterned)


def note_patterns(
    root: Path, arm: Arm, isa: Isa, size: str, limits: Limits, label: str
) -> Patterned:
    """Those that are kept; else executed now, and kept.

    In Python: compiled code keeps no addresses, so that this takes many times as long as an
    emulation.
    """
    from kernelexp.evidence.emulate import pattern_worker

    if kept := patterns(root, arm, isa, size):
        return kept
    whole = TimeLimit(name="emulation", seconds=limits.emulation_s, of=label)
    problem = consult.limit(limits.problem_s)
    job = jobs.emulation(root, arm, size, problem, whole, first_schedules(1), isa)
    job = msgspec.structs.replace(job, native="")
    where = f"variants/{job.kernel}/problem.py"
    noted = isolated.call(
        pattern_worker.__name__, job, pattern_worker.Patterned, where, (problem, whole)
    )
    _place(root, arm, isa, size).keep("patterns", msgspec.json.encode(noted))
    return noted


def modelled(root: Path, arm: Arm, size: str) -> ModelledRun | None:
    """Returns the kept result of modelling a variant of these sources, by whichever compiler it was
    built then; None without any."""
    kept = build.kept(root / build.CACHE / "modelled", _modelled(root, arm, size))
    return None if kept is None else decode(kept, ModelledRun)


def keep_modelled(root: Path, arm: Arm, size: str, run: ModelledRun) -> None:
    """Keeps a modelled run for the next command, and for pages, which execute nothing, and whose
    records may be of other machines' builds."""
    folder = root / build.CACHE / "modelled"
    build.keep(folder, _modelled(root, arm, size), msgspec.json.encode(run))


def source_digest(arm: Arm) -> str:
    """Returns a digest of an arm's kernel, axes and files, whoever built it."""
    content = (arm.kernel, arm.arch, arm.axes, build.own_files(arm))
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]


def _modelled(root: Path, arm: Arm, size: str) -> str:
    digest = hashlib.sha256(f"{_digest(root, arm.kernel)} {_parameters()}".encode()).hexdigest()
    return f"{source_digest(arm)}-{size}-{digest[:12]}.json"


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """The files that keep an execution's results, beside the build, named after what they hold."""

    folder: Path
    rest: str
    """Of their names: what was executed, the size, and a digest of all else that it depends on."""

    def kept(self, kind: str = "emulated") -> bytes | None:
        return build.kept(self.folder, f"{kind}{self.rest}")

    def keep(self, kind: str, content: bytes) -> None:
        build.keep(self.folder, f"{kind}{self.rest}", content)


def _code(
    arm: Arm, isa: Isa, schedules: Sequence[Schedule] | None
) -> tuple[Isa, tuple[Schedule, ...]]:
    """The code of an arm to execute, and the schedules: the usual ones unless others are named.

    A kernel that came as a cubin has no PTX: its SASS is executed in any case, and judged.
    """
    if is_cubin(arm):
        return "sass", _USUAL["ptx"] if schedules is None else tuple(schedules)
    return isa, _USUAL[isa] if schedules is None else tuple(schedules)


def _place(
    root: Path, arm: Arm, isa: Isa, size: str, schedules: Sequence[Schedule] | None = None
) -> _Place:
    isa, chosen = _code(arm, isa, schedules)
    digest = _digest(root, arm.kernel)
    if chosen != _USUAL[isa]:
        named = "; ".join(map(str, chosen))
        digest = hashlib.sha256(f"{digest}: {named}".encode()).hexdigest()
    what = "" if isa == "ptx" else f"-{isa}"
    return _Place(
        folder=build.folder_of(root, arm.identity), rest=f"{what}-{size}-{digest[:12]}.json"
    )


def _emulate(
    root: Path,
    arm: Arm,
    isa: Isa,
    size: str,
    limits: Limits,
    label: str,
    schedules: Sequence[Schedule] | None = None,
    emulator: Emulator | None = None,
    processes: int = 1,
) -> Emulated:
    isa, chosen = _code(arm, isa, schedules)
    before = files.digests(root, arm.kernel)
    whole = TimeLimit(name="emulation", seconds=limits.emulation_s, of=label)
    problem = consult.limit(limits.problem_s)
    job = jobs.emulation(root, arm, size, problem, whole, chosen, isa)
    job = msgspec.structs.replace(job, processes=processes)
    kinds = ("lines", "emulated") if isa == "ptx" else ("lines", "instructions", "emulated")
    emulated = (emulator or execute)(job)
    files.refuse_changes(root, arm.kernel, before, f"while {label} was emulated")
    files.note(root, arm.kernel, emulated.used)
    place = _place(root, arm, isa, size, schedules)  # by what problem.py is now known to read
    evidence = msgspec.structs.replace(
        emulated.evidence,
        emulator=version(),
        widths=_widths(root, arm, emulated.lines) if isa == "ptx" else (),
    )
    parts = {"lines": emulated.lines, "instructions": emulated.instructions, "emulated": evidence}
    for kind in kinds:
        place.keep(kind, msgspec.json.encode(parts[kind]))
    return msgspec.structs.replace(emulated, evidence=evidence)


def _widths(root: Path, arm: Arm, lines: Sequence[LineCost]) -> tuple[AccessWidths, ...]:
    from kernelexp.evidence.code import sass_lines
    from kernelexp.evidence.emulate import widths

    if arm.build is None:
        return ()
    artefacts = build.artefacts(root, arm.identity)
    entries = (arm.build.entry, *arm.build.others)
    sass = [
        instruction
        for entry in entries
        for instruction in sass_lines.read(artefacts.cubin, artefacts.sass, entry)
    ]
    return widths.compare(lines, sass)


def execute(job: EmulationJob) -> Emulated:
    """Emulates in a process of its own on this machine."""
    where, limits = f"variants/{job.kernel}/problem.py", (job.problem_limit, job.emulation_limit)
    return isolated.call(WORKER, job, Emulated, where, limits)


def _digest(root: Path, kernel: str) -> str:
    """Returns a digest of evidence's inputs besides PTX: problem.py, its checks, the emulator."""
    return hashlib.sha256(f"{_own()} {files.key(root, kernel)}".encode()).hexdigest()[:12]


@functools.cache
def _own() -> str:
    """Hash of all of the package that evidence depends on."""
    paths = (path for room in ROOMS for path in sorted((_PACKAGE / room).rglob("*.py")))
    return _hash(list(paths), version())


@functools.cache
def _parameters() -> str:
    """Hash of the parameters of all chips that times are modelled for."""
    return _hash(sorted((Path(warpsim.__file__).parent / "timing/chips").glob("*.toml")))


@functools.cache
def version() -> str:
    """Hash of warpsim, tables of opcodes and counters included, as evidence has it."""
    folder = Path(warpsim.__file__).parent
    return _hash(sorted([*folder.rglob("*.py"), *folder.rglob("*.[ch]pp")]))


def _hash(paths: Sequence[Path], start: str = "") -> str:
    digest = hashlib.sha256(start.encode())
    for file in paths:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
