"""A solution of somebody's problem through the stages, cheapest first, to the first that fails."""

from __future__ import annotations

import functools
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.measurement import Device
from kernelexp.services.execution import Executed
from kernelexp.services.tasks import failing, formats, identity, jail, modelled, rules
from kernelexp.services.tasks.assessment import (
    SHOWN,
    Assessment,
    AssessmentStage,
    CaseAnswer,
    Confinement,
    ExecutedKernel,
    Feedback,
    StageName,
)
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.problem_process import ROUNDS
from kernelexp.services.tasks.task import Task
from kernelexp.services.tasks.timing import timed
from kernelexp.services.tasks.timing.timed import SolutionBench
from kernelexp.services.tasks.workplace import Workplace
from kernelexp.system import device as devices
from kernelexp.system import disk
from kernelexp.system.disk import decode
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import full_name
from warpsim.schedule import Schedule, first_schedules

LARGEST = 64
"""A size of a problem that the emulator is given, unless more is asked for."""
LIMIT_S = 600.0
KNOWN = "assessments"


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """The way in which a solution is to be judged."""

    largest: int = LARGEST
    """0: the problem's own sizes."""
    schedules: int = 2
    """Further orders of warps and of asynchronous effects that it has to survive."""
    limit_s: float = LIMIT_S
    """Of each process."""
    device: str = "small"
    """The card that the solution sees."""
    gpu: Device | None = None
    """Where it is timed; None: nowhere."""
    modelled: bool = False
    """Whether the model of time looks at it before it is timed."""
    prune_us: float = 0.0
    """A modelled time: what is surely slower by the model is not timed; 0: all is."""
    reuse: bool = True
    """Whether the verdict of the same machine code is taken from before."""


class Known(Exception):
    """The verdict is that of an earlier solution."""

    def __init__(self, assessment: Assessment) -> None:
        self.assessment = assessment


def assess(
    problem: Path, solution: Path, tools: Toolchain, root: Path, wanted: Assignment
) -> Assessment:
    """Reads and judges; `root` has the cache. UsageError, ConfigurationError for a problem that
    can't be read, EnvironmentFault for a machine that can't build or confine."""
    if not solution.is_file():
        raise UsageError(f"there is no solution at {solution}.")
    task = formats.recognise(problem).read(problem, solution, wanted.largest)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        return _Run(task, (problem, solution), tools, root, wanted, Path(place)).through()


class _Run:
    def __init__(
        self,
        task: Task,
        paths: tuple[Path, Path],
        tools: Toolchain,
        root: Path,
        wanted: Assignment,
        place: Path,
    ) -> None:
        self._paths, self._place = paths, place
        self._task, self._tools, self._root, self._wanted = task, tools, root, wanted
        self._work = Workplace(task, tools, root, place, wanted.device, wanted.limit_s)
        self._assessed = Assessment(
            format=task.format,
            task=task.name,
            solution=task.solution.name,
            sha256=hashlib.sha256(repr(sorted(task.solution.files.items())).encode()).hexdigest(),
            status=Status.UNMEASURED,
            reason="",
            sentence="",
            stages=(),
        )
        """As far as the stages have come."""
        self._key = ""

    def through(self) -> Assessment:
        try:
            self._stage("rules", self._rules)
            self._stage("build", self._build)
            self._stage("known", self._known)
            self._stage("emulate", lambda: self._emulate(Schedule()))
            self._stage("schedules", self._schedules)
            if self._wanted.modelled or self._wanted.prune_us:
                self._model()
            self._skip_or_time()
        except TaskFailed as failed:
            return self._conclude(
                failed.status, failed.reason, failed.sentence, feedback=failed.feedback
            )
        except Known as known:
            so_far = self._assessed
            return msgspec.structs.replace(
                known.assessment, sha256=so_far.sha256, stages=so_far.stages
            )
        return self._passed()

    def _note(self, **changed: Any) -> None:
        """Keeps these fields of the assessment."""
        self._assessed = msgspec.structs.replace(self._assessed, **changed)

    def _stage(self, name: StageName, step: Callable[[], None]) -> None:
        begun = time.monotonic()
        try:
            step()
        except TaskFailed as failed:
            self._add(name, "failed", begun, failed.reason, failed.sentence)
            raise
        except Known as known:
            sentence = f"the same code was judged before: {known.assessment.sentence}"
            self._add(name, "failed", begun, "same_code", sentence)
            raise
        self._add(name, "passed", begun)

    def _add(self, name: StageName, outcome: Any, begun: float, *words: str) -> None:
        reason, sentence = words or ("", "")
        seconds = round(time.monotonic() - begun, 3) if begun else 0.0
        stage = AssessmentStage(
            name=name, outcome=outcome, seconds=seconds, reason=reason, sentence=sentence
        )
        self._note(stages=(*self._assessed.stages, stage))

    # Stages

    def _rules(self) -> None:
        faults = rules.faults(self._task.solution)
        if faults:
            first = faults[0]
            where = f"{first.file}:{first.line}: " if first.line else ""
            raise TaskFailed(
                Status.INVALID, first.name, f"{where}{first.sentence}", tuple(faults[:SHOWN])
            )
        if refused := rules.unexecuted(self._task.solution):
            raise TaskFailed(Status.UNMEASURED, "not_executed", refused)

    def _build(self) -> None:
        """Inputs by the problem's process; then the solution is imported, which compiles it."""
        work = self._work
        if fault := work.problem("make", work.given).fault:
            smaller = any(case.reduced for case in self._task.cases)
            hint = " Its sizes were reduced: --largest 0 keeps them." if smaller else ""
            raise EnvironmentFault(f"{self._task.name}: {fault}{hint}")
        if not _compiles(self._task):
            return
        failing.raise_if_killed(work.solution("build", Schedule()))
        if (report := work.report()).error:
            raise failing.raised(report)

    def _known(self) -> None:
        libraries = sorted((self._work.answers / "built").glob("*/*.so"))
        card = self._wanted.gpu.name if self._wanted.gpu else ""
        wanted = self._wanted
        how = f"{card}, {wanted.schedules} schedules, {wanted.modelled}, {wanted.prune_us}"
        self._key = identity.key(self._task, how, libraries, self._tools, self._work.own)
        path = self._root / ".kernelexp" / KNOWN / f"{self._key}.json"
        if self._wanted.reuse and path.is_file():
            raise Known(decode(path.read_bytes(), Assessment))

    def _emulate(self, schedule: Schedule) -> None:
        executed = self._work.solution("run", schedule)
        feedback = tuple(failing.of_kernels(executed))
        kernels = (
            ExecutedKernel(
                name=full_name(kernel.kernel),
                launches=kernel.launches,
                thread_instructions=kernel.thread_instructions,
            )
            for kernel in executed.kernels
        )
        self._note(kernels=tuple(kernels))
        if executed.refused:
            raise TaskFailed(Status.UNMEASURED, "not_executed", executed.refused)
        if executed.findings:
            first = executed.findings[0]
            where = f"{first.where}: " if first.where else ""
            status = Status.CRASHED if first.name in failing.FATAL else Status.INCORRECT
            raise TaskFailed(
                status, first.name, f"{where}{failing.plain(first.sentence)}", feedback
            )
        self._judge(executed)

    def _judge(self, executed: Executed) -> None:
        failing.raise_if_killed(executed)
        if (report := self._work.report()).error:
            raise failing.raised(report)
        judged = self._work.problem("judge", self._work.answers)
        if judged.fault:
            raise TaskFailed(Status.INCORRECT, "check_failed", judged.fault)
        if judged.errors:
            self._note(
                largest_absolute_error=judged.errors.absolute,
                largest_relative_error=judged.errors.relative,
            )
        pairs = list(zip(self._task.cases, judged.cases, strict=True))
        cases = (
            CaseAnswer(
                name=case.name,
                weight=case.weight,
                right=not answer.sentence,
                sentence=answer.sentence,
                reduced=case.reduced,
            )
            for case, answer in pairs
        )
        self._note(cases=tuple(cases))
        for case, answer in pairs:
            if answer.sentence:
                raise failing.wrong(case.name, bool(case.reduced), answer)

    def _schedules(self) -> None:
        if not self._assessed.kernels:
            return
        for schedule in first_schedules(self._wanted.schedules + 1)[1:]:
            self._emulate(schedule)

    def _model(self) -> None:
        """Models at the sizes that are timed. It ends a solution on request only."""
        begun = time.monotonic()
        call = modelled.look(self._timed_work, self._timed_task, self._tools, self._root)
        self._note(modelled=call)
        than_us = self._wanted.prune_us
        if call.refused:
            self._add("model", "skipped", begun, "not_modelled", call.refused)
        elif than_us and (by := modelled.slower(call, than_us))[0] > 1:
            words = (
                f"modelled at {call.time_us:.3g} us, {by[0]:.2g} to {by[1]:.2g} times the "
                f"{than_us:.3g} us asked for: not timed, as requested. Nothing was measured."
            )
            self._add("model", "failed", begun, "modelled_slower", words)
            raise TaskFailed(Status.UNMEASURED, "modelled_slower", words)
        else:
            self._add("model", "passed", begun)

    def _skip_or_time(self) -> None:
        why = self._untimed()
        if not why:
            return self._stage("time", self._time)
        self._add("time", "skipped", 0.0, "no_gpu", f"{why}.")

    def _untimed(self) -> str:
        """Says why nothing is timed; empty where it is."""
        if self._wanted.gpu is None:
            return "there is no GPU"
        return "" if "+cpu" not in version("torch") else "torch was installed without CUDA"

    def _time(self) -> None:
        """Times at the sizes that the problem names, which the emulator may have seen smaller."""
        gpu = self._wanted.gpu
        assert gpu is not None
        work, task = self._timed_work, self._timed_task
        bench = SolutionBench(device="cuda", card=gpu.name, arch=gpu.arch)
        limit_s = self._wanted.limit_s
        hold = functools.partial(devices.hold, gpu.uuid, limit_s, gpu.name)
        times, effect = timed.measure(work, task, bench, self._per_call(), hold)
        self._note(times=times, effect=effect, device=gpu.name)

    @functools.cached_property
    def _timed_task(self) -> Task:
        return formats.named(self._task.format).read(*self._paths, 0)

    @functools.cached_property
    def _timed_work(self) -> Workplace:
        place = self._place / "timed"
        place.mkdir()
        wanted = self._wanted
        return Workplace(
            self._timed_task, self._tools, self._root, place, wanted.device, wanted.limit_s
        )

    def _per_call(self) -> float:
        """Thread-instructions of a call, where they were counted at the sizes that are timed."""
        cases = self._task.cases
        if len(cases) > 1 or cases[0].reduced or self._task.timed:
            return 0.0
        return sum(kernel.thread_instructions for kernel in self._assessed.kernels) / ROUNDS

    # Results

    def _passed(self) -> Assessment:
        reduced = any(case.reduced for case in self._task.cases)
        words = "right " + ("at reduced sizes" if reduced else "at all sizes that were tried")
        if not self._assessed.kernels:
            words += ", without a kernel of its own"
        if self._assessed.effect is None:
            why = self._untimed()
            return self._conclude(Status.UNMEASURED, "no_gpu", f"{words}; not timed: {why}.")
        status, reason, spelled = timed.conclude(self._assessed.effect)
        return self._conclude(status, reason, f"{words}; {spelled}.")

    def _conclude(
        self, status: Status, reason: str, sentence: str, feedback: tuple[Feedback, ...] = ()
    ) -> Assessment:
        """The assessment, which is kept for the next solution of the same code."""
        self._note(
            status=status,
            reason=reason,
            sentence=sentence,
            feedback=feedback,
            confined=tuple(self._confined()),
            not_checked=tuple(self._unseen()),
        )
        if self._key:
            folder = self._root / ".kernelexp" / KNOWN
            folder.mkdir(parents=True, exist_ok=True)
            content = msgspec.json.encode(self._assessed)
            disk.write((folder / f"{self._key}.json").resolve(), content, durable=False)
        return self._assessed

    def _unseen(self) -> Iterator[str]:
        yield from self._task.not_checked
        if any(case.reduced for case in self._task.cases):
            yield "The problem's own sizes: they were reduced for the emulator."
        if not self._assessed.times:
            yield "Times: nothing was measured."
        for confinement in self._confined():
            yield from confinement.gaps()

    def _confined(self) -> Iterator[Confinement]:
        """Yields the confinement of each stage in which a process of the solution's was started."""
        names = {stage.name for stage in self._assessed.stages if stage.outcome != "skipped"}
        if names & {"emulate", "schedules"}:
            yield jail.strongest("emulated")
        if "time" in names:
            yield jail.strongest("timed")


def _compiles(task: Task) -> bool:
    """Whether its import may take a compiler."""
    solution = task.solution
    return (
        solution.language == "cuda"
        or not solution.main.endswith(".py")
        or any("cpp_extension" in text for text in solution.files.values())
    )


def exit_code(assessed: Assessment) -> int:
    """0 only for what passed every stage that there was."""
    if assessed.reason == "not_executed":
        return errors.ENVIRONMENT
    if assessed.status in (Status.UNMEASURED, Status.IMPROVED, Status.NEUTRAL, Status.REJECTED):
        return errors.OK
    return errors.BUILD if assessed.status is Status.BUILD_FAILED else errors.WRONG_RESULT
