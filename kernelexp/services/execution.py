"""`kernelexp exec`: a program compiled, run without a GPU, and what it and its kernels do wrong."""

from __future__ import annotations

import functools
import linecache
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kernelexp.evidence import native
from kernelexp.evidence.programs import cards, compiling, library, running, sites
from kernelexp.evidence.programs.compiling import CompilerCall
from kernelexp.evidence.programs.running import ProgramRun
from kernelexp.evidence.programs.sites import CallSite
from kernelexp.model import errors
from kernelexp.model.errors import UsageError, join
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import full_name, is_named
from warpsim.machine.core.site import CALLERS
from warpsim.runtime.capturing import CapturedLaunch, LaunchChoice
from warpsim.runtime.launching import Destroyed
from warpsim.runtime.reports import MISTAKES, Caught, KernelTotals, Remark, Report
from warpsim.runtime.server import Settings
from warpsim.runtime.triton import STORAGE
from warpsim.schedule import Schedule, first_schedules

Level = Literal["finding", "warning", "note"]
_TOKEN = re.compile(r"@(\d+)(-?)(?:\[([\d,]+)\] \((\d+-byte elements)\))?")
_ASSIGNED = re.compile(
    r"cuda(?:Malloc|HostAlloc)\w*\s*(?:<[^>]*>)?\s*\(\s*(?:\(\s*void\s*\*\s*\*\s*\)\s*)?&?\s*"
    r"([A-Za-z_][\w.\[\]]*(?:->\w+)*)"
)
_FREED = "which was freed at"
STATIC = (
    "it is linked with the static CUDA runtime, which takes a driver: link it again with nvcc "
    "-cudart shared, or let exec build it (--make 'make')."
)


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The program to run, and how to run it."""

    sources: tuple[Path, ...] = ()
    """To compile; none: `argv` begins with a program that is there."""
    flags: tuple[str, ...] = ()
    """Of nvcc."""
    argv: tuple[str, ...] = ()
    make: str = ""
    """A command that builds the program first, with an nvcc that links it with our runtime."""
    folder: Path | None = None
    """Where it is built and run; None: here."""
    device: str = "H200"
    kernels: tuple[str, ...] = ()
    launches: tuple[tuple[int, int], ...] = ()
    per_kernel: int = 0
    """How many launches of each kernel are judged; 0: all."""
    unwritten: int = 0xFF
    """The byte that device memory reads as before it is written."""
    destroys: Destroyed = "context"
    """What a bad access ends: all that follows, as on a card, or its launch."""
    limit: int = 2_000_000_000
    """Warp instructions of a launch."""
    timeout_s: float | None = None
    schedule: Schedule = Schedule()
    schedules: int = 1
    """Under how many it runs, `schedule` first; what it prints under that one is its output."""
    environment: dict[str, str] = {}
    """Of the program, besides this process's own."""


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a program or one of its kernels does."""

    level: Level
    """finding: wrong; warning: formally so; note: need not be."""
    name: str
    sentence: str
    kernel: str = ""
    """Empty where it is a call of the program's."""
    file: str = ""
    line: int = 0
    """Of the kernel's source, or of the call."""
    inlined: str = ""
    """Where the function that the line is of was inlined, the outermost line first."""
    call: str = ""
    """Where the kernel was launched."""
    launch: int = 0
    """The first that showed it, from 1."""
    stream: int = 0
    launches: int = 1
    """How many showed it."""

    @property
    def where(self) -> str:
        return f"{Path(self.file).name}:{self.line}" if self.file else ""


class Executed(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of running a program."""

    program: str
    returncode: int
    """As Python has it: negative for a signal."""
    seconds: float
    device: str
    kernels: tuple[KernelTotals, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    refused: str = ""
    """What the emulator does not execute, in a sentence."""

    @property
    def findings(self) -> tuple[Mistake, ...]:
        return tuple(mistake for mistake in self.mistakes if mistake.level == "finding")

    @property
    def computed(self) -> tuple[str, ...]:
        """Functions of libraries that the CPU computed, not NVIDIA's kernels."""
        notes = [mistake for mistake in self.mistakes if mistake.name == "host-library"]
        return tuple(sorted({note.sentence.partition(" ")[0] for note in notes}))

    @property
    def launches(self) -> int:
        return sum(kernel.launches for kernel in self.kernels)

    @property
    def thread_instructions(self) -> int:
        return sum(kernel.thread_instructions for kernel in self.kernels)


def execute(
    request: ExecRequest, tools: Toolchain, root: Path, *, output: int | None = None
) -> Executed:
    """Builds and runs a program; `root` has the cache.

    output: the file that its standard output goes to; None: this process's own.
    Raises BuildError, UsageError.
    """
    settings, arch = _settings(request)
    runtime = library.folder(root)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        argv = _built(request, tools, runtime, arch, Path(place))
        ran = _run(request, argv, settings, tools, root, output)
        mistakes = [mistake for report in ran.reports for mistake in _mistakes(report)]
        for schedule in first_schedules(request.schedules)[1:]:
            changed = msgspec.structs.replace(settings, schedule=schedule)
            with tempfile.TemporaryFile() as unseen:
                again = _run(request, argv, changed, tools, root, unseen.fileno())
            mistakes += _new(mistakes, again, ran, schedule)
    refusals = [report.refused for report in ran.reports if report.refused]
    if refusals:
        refused = refusals[0].sentence
    else:
        launched = any(report.kernels for report in ran.reports)
        refused = "" if launched else _unserved((request.folder or Path()) / argv[0])
    return Executed(
        program=Path(argv[0]).name,
        returncode=ran.returncode,
        seconds=ran.seconds,
        device=settings.device["name"],
        kernels=_added(ran.reports),
        mistakes=tuple(sorted(mistakes, key=_order)),
        refused=refused,
    )


def require_checked(request: ExecRequest, executed: Executed) -> None:
    """UsageError where a run that ends well has launches, but none that the request names."""
    if not executed.launches or exit_code(executed) != errors.OK:
        return
    for name in request.kernels:
        if not any(is_named(name, kernel.kernel) for kernel in executed.kernels):
            raise UsageError(_launches_none(executed.program, name, executed.kernels))
    if not any(kernel.judged for kernel in executed.kernels):
        names = " and ".join(request.kernels) or executed.program
        raise UsageError(f"nothing was checked: --launches leaves out every launch of {names}.")


def _launches_none(program: str, name: str, kernels: Sequence[KernelTotals]) -> str:
    counts = {full_name(kernel.kernel): kernel.launches for kernel in kernels}
    launched = join(f"{kernel} ({count:,})" for kernel, count in sorted(counts.items()))
    return f"{program} launches no {name!r}, but {launched}."


def _new(
    mistakes: Sequence[Mistake], again: ProgramRun, first: ProgramRun, schedule: Schedule
) -> list[Mistake]:
    """Returns the mistakes that another schedule shows and none before it did."""

    def key(mistake: Mistake) -> tuple[str, ...]:
        return mistake.level, mistake.name, mistake.kernel, mistake.where, mistake.call

    known = set(map(key, mistakes))
    words = f" (Under the schedule {schedule}.)"
    new = [
        msgspec.structs.replace(mistake, sentence=f"{mistake.sentence}{words}")
        for report in again.reports
        for mistake in _mistakes(report)
        if key(mistake) not in known
    ]
    codes = first.returncode, again.returncode
    if codes[0] != codes[1] and not any(mistake.name == "exit-code" for mistake in mistakes):
        sentence = (
            f"the program ends with exit code {codes[0]}, and with {codes[1]} under the schedule "
            f"{schedule}."
        )
        new.append(Mistake(level="finding", name="exit-code", sentence=sentence))
    return new


def capture(
    request: ExecRequest,
    choice: LaunchChoice,
    tools: Toolchain,
    root: Path,
    output: int | None = None,
) -> tuple[CapturedLaunch, tuple[CompilerCall, ...]]:
    """Builds and runs a program up to a launch, which is kept with its memory; how the program was
    compiled, as far as that is known.

    Raises BuildError; UsageError where there is no such launch.
    """
    settings, arch = _settings(request)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        argv = _built(request, tools, library.folder(root), arch, Path(place))
        settings = msgspec.structs.replace(settings, capture=choice)
        ran = _run(request, argv, settings, tools, root, output)
        calls = compiling.calls(Path(place))
    own = CompilerCall(folder=Path(), arguments=(*request.flags, *map(str, request.sources)))
    for report in ran.reports:
        if report.captured:
            return report.captured, (*calls, own)
    raise UsageError(_why_none(choice, ran, argv[0]))


def launches(
    request: ExecRequest, most: int, tools: Toolchain, root: Path
) -> tuple[ProgramRun, tuple[CapturedLaunch, ...]]:
    """Runs a compiled program, and keeps its launches instead of executing them."""
    settings, _ = _settings(request)
    settings = msgspec.structs.replace(settings, unexecuted=most)
    ran = _run(request, request.argv, settings, tools, root, None)
    return ran, tuple(launch for report in ran.reports for launch in report.unexecuted)


def _why_none(choice: LaunchChoice, ran: ProgramRun, program: str) -> str:
    """Says why a launch was not captured."""
    for report in ran.reports:
        if report.refused:
            return report.refused.sentence
    kernels = _added(ran.reports)
    own = [totals.launches for totals in kernels if choice.names(totals.kernel)]
    if own:
        return f"{choice.kernel} is launched {max(own):,} times, not {choice.number:,}."
    if kernels:
        return _launches_none(Path(program).name, choice.kernel, kernels)
    return f"{Path(program).name} ended with exit code {ran.returncode} and launched no kernel."


def _settings(request: ExecRequest) -> tuple[Settings, str]:
    """Returns the settings that launches are executed with, and the architecture they are compiled
    for."""
    result, arch = cards.describe(request.device)
    settings = Settings(
        device={**result, "unwritten": str(request.unwritten)},
        arch=int(arch.removeprefix("sm_").rstrip("af")),
        limit=request.limit,
        kernels=request.kernels,
        launches=request.launches,
        per_kernel=request.per_kernel,
        destroys=request.destroys,
        schedule=request.schedule,
        processes=len(os.sched_getaffinity(0)),
    )
    return settings, arch


def _run(
    request: ExecRequest,
    argv: Sequence[str],
    settings: Settings,
    tools: Toolchain,
    root: Path,
    output: int | None,
) -> ProgramRun:
    return running.run(
        argv,
        settings,
        tools,
        library.folder(root),
        native.library(root),
        cwd=request.folder,
        environment=request.environment,
        timeout_s=request.timeout_s,
        output=output,
    )


def _built(
    request: ExecRequest, tools: Toolchain, runtime: Path, arch: str, place: Path
) -> tuple[str, ...]:
    """The command that runs the program."""
    if request.make:
        _make(request, tools, runtime, arch, place)
    if not request.sources:
        program = (request.folder or Path()) / request.argv[0]
        if not program.exists() and "/" in request.argv[0]:
            raise UsageError(f"there is no program {request.argv[0]}.")
        return request.argv
    path = place / request.sources[0].stem
    compiling.compile_program(request.sources, request.flags, tools, runtime, arch, path)
    return (str(path), *request.argv)


def _make(request: ExecRequest, tools: Toolchain, runtime: Path, arch: str, place: Path) -> None:
    command = request.make
    environment = compiling.build_environment(place, tools, runtime, arch)
    done = processes.run(
        ["sh", "-c", command], cwd=request.folder, timeout_s=compiling.LIMIT_S, env=environment
    )
    if done.returncode != 0:
        words = f"{done.stdout}\n{done.stderr}".strip()[-4000:]
        raise errors.BuildError(f"`{command}` fails:\n{words}")


def _unserved(path: Path) -> str:
    """Says why a program may never have asked for the runtime; empty where it had no need of it."""
    content = path.read_bytes() if path.is_file() else b""
    static = b"nv_fatbin" in content and b"libcudart.so" not in content
    return f"{path.name}: {STATIC}" if static else ""


def exit_code(executed: Executed) -> int:
    """The program's own code where it has one; else 4 for findings, 6 for what is not executed."""
    if executed.refused:
        return errors.ENVIRONMENT
    if executed.returncode:
        return executed.returncode if executed.returncode > 0 else 128 - executed.returncode
    return errors.WRONG_RESULT if executed.findings else errors.OK


def _added(reports: Sequence[Report]) -> tuple[KernelTotals, ...]:
    """The launches of each kernel in all processes."""
    added: dict[str, KernelTotals] = {}
    for kernel_totals in (kernel for report in reports for kernel in report.kernels):
        old = added.get(kernel_totals.kernel)
        added[kernel_totals.kernel] = (
            kernel_totals
            if old is None
            else KernelTotals(
                kernel=kernel_totals.kernel,
                launches=old.launches + kernel_totals.launches,
                judged=old.judged + kernel_totals.judged,
                thread_instructions=old.thread_instructions + kernel_totals.thread_instructions,
                seconds=old.seconds + kernel_totals.seconds,
            )
        )
    return tuple(sorted(added.values(), key=lambda totals: -totals.seconds))


_LEVELS: tuple[Level, ...] = ("finding", "warning", "note")


def _order(mistake: Mistake) -> tuple[int, int]:
    return _LEVELS.index(mistake.level), mistake.launch


def _mistakes(report: Report) -> list[Mistake]:
    stacks = [
        *(caught.frames for caught in report.caught),
        *(remark.frames for remark in report.remarks),
        *report.sites.values(),
        *report.freed.values(),
    ]
    lines = sites.resolve(report.maps, set(stacks))
    named = functools.partial(_named, report, lines)
    return [
        *(_of_kernel(caught, lines, named) for caught in report.caught),
        *(_of_call(remark, lines, named) for remark in report.remarks),
    ]


_Named = functools.partial[str]


def _of_kernel(caught: Caught, lines: Mapping[tuple[int, ...], CallSite], named: _Named) -> Mistake:
    finding = caught.finding
    own = finding.source.own() if finding.source else None
    call = lines.get(caught.frames)
    sentence = named(finding.sentence)
    freed = finding.name == "out-of-bounds" and _FREED in finding.sentence
    return Mistake(
        level="warning" if caught.formal else "finding",
        name="use-after-free" if freed else finding.name,
        sentence=sentence,
        kernel=full_name(caught.kernel),
        file=own.file if own else "",
        line=own.line if own else 0,
        inlined=own.caller.place(CALLERS - 1) if own and own.caller else "",
        call=str(call) if call else "",
        launch=caught.launch,
        stream=caught.stream,
        launches=caught.launches,
    )


def _of_call(remark: Remark, lines: Mapping[tuple[int, ...], CallSite], named: _Named) -> Mistake:
    site = lines.get(remark.frames)
    return Mistake(
        level="finding" if remark.name in MISTAKES else "note",
        name=remark.name,
        sentence=named(remark.sentence),
        file=site.file if site else "",
        line=site.line if site else 0,
        launches=remark.count,
    )


def _named(report: Report, lines: Mapping[tuple[int, ...], CallSite], sentence: str) -> str:
    """A sentence with the program's own names of its allocations, and of its kernels."""

    def label(match: re.Match[str]) -> str:
        number = int(match[1])
        stack = (report.freed if match[2] else report.sites).get(number, ())
        site = lines.get(stack)
        if match[2]:
            return str(site) if site else "a place that is not known"
        return _allocation(site, number, match[3], match[4])

    return _TOKEN.sub(label, re.sub(r"\b_Z\w+", lambda match: full_name(match[0]), sentence))


def _allocation(
    site: CallSite | None, number: int, element: str | None = None, size: str | None = None
) -> str:
    """`p (a.cu:26)`, or of an element `p[1] (4-byte elements, allocated at a.cu:26)`."""
    if site and site.function.startswith(STORAGE):
        name = f"the storage of {site.function.removeprefix(STORAGE)} ({site})"
        return f"element {element} of {name} ({size})" if element else name
    names = _ASSIGNED.findall(linecache.getline(site.file, site.line)) if site else []
    if len(names) == 1:
        at = f"[{element}] ({size}, allocated at {site})" if element else f" ({site})"
        return f"{names[0]}{at}"
    name = f"the allocation of {site}" if site else f"allocation {number}"
    return f"element {element} of {name} ({size})" if element else name
