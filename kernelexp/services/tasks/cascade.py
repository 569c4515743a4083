"""A solution of somebody's problem through the stages, cheapest first, to the first that fails."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.evidence.programs import compiling, library
from kernelexp.model.arm.verdict import Status
from kernelexp.model import errors
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.services import execution
from kernelexp.services.execution import Asked, Executed
from kernelexp.services.tasks import allocation, extensions, formats, identity, jail, rules
from kernelexp.services.tasks.assessment import (
    SHOWN,
    Assessment,
    CaseAnswer,
    Feedback,
    LaunchedKernel,
    Stage,
    StageName,
)
from kernelexp.services.tasks.problem_process import ROUNDS
from kernelexp.services.tasks.task import Task
from kernelexp.system import wholefile
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.schedule import Schedule, first_schedules

LARGEST = 64
"""A size of a problem that the emulator is given, unless more is asked for."""
LIMIT_S = 600.0
INSTRUCTIONS = 200_000_000
KNOWN = "assessments"
_ARCH = "sm_90a"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How a solution is to be judged."""

    largest: int = LARGEST
    """0: the problem's own sizes."""
    schedules: int = 2
    """Further orders of warps and of asynchronous effects that it has to survive."""
    limit_s: float = LIMIT_S
    """Of each process."""
    device: str = "small"
    """The card that the solution sees."""
    reuse: bool = True
    """Whether the verdict of the same machine code is taken from before."""


class Failed(Exception):
    """A stage that did not pass."""

    def __init__(
        self, status: Status, reason: str, sentence: str, feedback: tuple[Feedback, ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status, self.reason, self.sentence = status, reason, sentence
        self.feedback = feedback


class Known(Exception):
    """The verdict is that of an earlier solution."""

    def __init__(self, assessment: Assessment) -> None:
        self.assessment = assessment


def assess(problem: Path, solution: Path, tools: Toolchain, root: Path, wanted: Wanted) -> Assessment:
    """Reads and judges; `root` has the cache. UsageError, ConfigurationError for a problem that
    can't be read, EnvironmentFault for a machine that can't build or confine."""
    if not solution.is_file():
        raise UsageError(f"there is no solution at {solution}.")
    task = formats.recognise(problem).read(problem, solution, wanted.largest)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
        return _Run(task, tools, root, wanted, Path(place)).through()


class _Run:
    def __init__(
        self, task: Task, tools: Toolchain, root: Path, wanted: Wanted, place: Path
    ) -> None:
        self._task, self._tools, self._root, self._wanted = task, tools, root, wanted
        self._own, self._given, self._answers = (
            place / name for name in ("problem", "given", "answers")
        )
        self._stages: list[Stage] = []
        self._cases: tuple[CaseAnswer, ...] = ()
        self._errors: dict[str, Any] = {}
        self._kernels: tuple[LaunchedKernel, ...] = ()
        self._key = ""

    def through(self) -> Assessment:
        try:
            self._stage("rules", self._rules)
            self._stage("build", self._build)
            self._stage("known", self._known)
            self._stage("emulate", lambda: self._emulate(Schedule()))
            self._stage("schedules", self._schedules)
        except Failed as failed:
            return self._keep(self._failed(failed))
        except Known as known:
            return msgspec.structs.replace(
                known.assessment, sha256=self._sha256(), stages=tuple(self._stages)
            )
        sentence = "a machine without a GPU times nothing."
        skipped = Stage(name="time", outcome="skipped", reason="no_gpu", sentence=sentence)
        self._stages.append(skipped)
        return self._keep(self._passed())

    def _stage(self, name: StageName, step: Callable[[], None]) -> None:
        begun = time.monotonic()
        try:
            step()
        except Failed as failed:
            self._add(name, "failed", begun, failed.reason, failed.sentence)
            raise
        except Known as known:
            sentence = f"the same code was judged before: {known.assessment.sentence}"
            self._add(name, "failed", begun, "same_code", sentence)
            raise
        self._add(name, "passed", begun)

    def _add(self, name: StageName, outcome: Any, begun: float, *words: str) -> None:
        reason, sentence = words or ("", "")
        seconds = round(time.monotonic() - begun, 3)
        self._stages.append(
            Stage(name=name, outcome=outcome, seconds=seconds, reason=reason, sentence=sentence)
        )

    # Stages

    def _rules(self) -> None:
        faults = rules.faults(self._task.solution)
        if faults:
            first = faults[0]
            where = f"{first.file}:{first.line}: " if first.line else ""
            raise Failed(
                Status.INVALID, first.name, f"{where}{first.sentence}", tuple(faults[:SHOWN])
            )
        if self._task.solution.refused:
            raise Failed(Status.UNMEASURED, "not_executed", self._task.solution.refused)

    def _build(self) -> None:
        """Inputs by the problem's process; then the solution is imported, which compiles it."""
        for folder in (self._own, self._given, self._answers):
            folder.mkdir()
        self._write_files()
        fault = self._problem("make", self._given).get("fault")
        if fault:
            raise EnvironmentFault(f"{self._task.name}: {fault}")
        if not _compiles(self._task):
            return
        self._solution("build", Schedule())
        told = self._told()
        if told.get("error") == "build":
            raise Failed(
                Status.BUILD_FAILED,
                "compile",
                str(told["sentence"])[:2000],
                tuple(_compiler_lines(str(told["sentence"]))),
            )
        if "error" in told:
            raise self._raised(told)

    def _write_files(self) -> None:
        encoded = msgspec.json.encode(self._task)
        (self._own / "task.json").write_bytes(encoded)
        # The reference stays here.
        (self._given / "task.json").write_bytes(
            msgspec.json.encode(msgspec.structs.replace(self._task, files={}))
        )
        seeds = [secrets.randbelow(1 << 31) for _ in range(len(self._task.cases) * ROUNDS)]
        (self._own / "seeds.json").write_text(json.dumps(seeds))
        for folder, files in (
            (self._own, self._task.files),
            (self._given, self._task.solution.files),
        ):
            for name, text in files.items():
                path = (folder / name).resolve()
                if not path.is_relative_to(folder.resolve()):
                    raise UsageError(f"the file name {name!r} leads out of its folder.")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def _known(self) -> None:
        libraries = sorted((self._answers / "built").glob("*/*.so"))
        self._key = identity.key(self._task, libraries, self._tools, self._own)
        path = self._root / ".kernelexp" / KNOWN / f"{self._key}.json"
        if self._wanted.reuse and path.is_file():
            raise Known(msgspec.json.decode(path.read_bytes(), type=Assessment))

    def _emulate(self, schedule: Schedule) -> None:
        executed = self._solution("run", schedule)
        feedback = tuple(_of_kernels(executed))
        self._kernels = tuple(
            LaunchedKernel(
                name=execution.plain(each.kernel),
                launches=each.launches,
                thread_instructions=each.thread_instructions,
            )
            for each in executed.kernels
        )
        if executed.refused:
            raise Failed(Status.UNMEASURED, "not_executed", executed.refused)
        if executed.findings:
            first = executed.findings[0]
            where = f"{first.where}: " if first.where else ""
            status = Status.CRASHED if first.name in _FATAL else Status.INCORRECT
            raise Failed(status, first.name, f"{where}{first.sentence}", feedback)
        self._judge(executed)

    def _judge(self, executed: Executed) -> None:
        told = self._told()
        if "error" in told:
            raise self._raised(told)
        if executed.returncode:
            raise _ended(executed)
        judged = self._problem("judge", self._answers)
        if "fault" in judged:
            raise Failed(Status.INCORRECT, "check_failed", str(judged["fault"]))
        self._errors = judged["errors"] or {}
        pairs = list(zip(self._task.cases, judged["cases"], strict=True))
        self._cases = tuple(
            CaseAnswer(
                name=case.name,
                weight=case.weight,
                right=not answer["sentence"],
                sentence=answer["sentence"],
                reduced=case.reduced,
            )
            for case, answer in pairs
        )
        for case, answer in pairs:
            if answer["sentence"]:
                raise _wrong(case.name, bool(case.reduced), answer)

    def _schedules(self) -> None:
        if not self._kernels:
            return
        for schedule in first_schedules(self._wanted.schedules + 1)[1:]:
            self._emulate(schedule)

    # Processes

    def _problem(self, what: str, other: Path) -> dict[str, Any]:
        done = processes.run_forked(
            "kernelexp.services.tasks.problem_process",
            stdin=json.dumps([what, str(self._own), str(other)]),
            timeout_s=self._wanted.limit_s,
        )
        result = self._own / f"{what}.json"
        if done.returncode != 0 or not result.is_file():
            last = done.stderr.strip().splitlines()[-1:] or ["it was killed"]
            raise EnvironmentFault(f"{self._task.name}: its reference can't be run: {last[0]}.")
        told: dict[str, Any] = json.loads(result.read_text())
        return told

    def _solution(self, what: str, schedule: Schedule) -> Executed:
        """Runs it with new answers."""
        for old in self._answers.iterdir():
            if old.name != "built":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        runtime = library.folder(self._root)
        memory = allocation.find(self._root, runtime)
        argv = [sys.executable, "-P", "-m", "kernelexp.services.tasks.solution_process", what]
        argv += [str(self._given), str(self._answers), str(memory)]
        output = [self._answers / name for name in ("printed", "errors")]
        limit = self._wanted.limit_s
        if jail.can_confine():
            argv = jail.command(argv, [self._given, runtime, memory], self._answers, output, limit)
        asked = Asked(
            argv=tuple(argv),
            device=self._wanted.device,
            limit=INSTRUCTIONS,
            timeout_s=limit,
            schedule=schedule,
            environment=self._environment(runtime),
        )
        return execution.execute(asked, self._tools, self._root)

    def _environment(self, runtime: Path) -> dict[str, str]:
        """What the solution's process is told of compilers, and of places to write to."""
        flags = [*compiling.link_flags(runtime, _ARCH), "-std=c++20", "-Xcompiler=-fPIC", "-w"]
        told = {"nvcc": [self._tools.nvcc, *flags], "folder": str(self._answers / "built")}
        (self._answers / "built").mkdir(exist_ok=True)
        return {
            "PYTHONPATH": str(jail.packages(self._given)),
            extensions.VARIABLE: json.dumps(told),
            "TMPDIR": str(self._answers),
            "HOME": str(self._answers),
            "CUDA_VISIBLE_DEVICES": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _told(self) -> dict[str, Any]:
        """What the solution's process says of its end; nothing, where that makes no sense."""
        try:
            told = json.loads((self._answers / "told.json").read_text())
        except (OSError, ValueError):
            errors = self._answers / "errors"
            words = errors.read_text(errors="replace").strip() if errors.is_file() else ""
            last = words.splitlines()[-1][:300] if words else "its process ended without a word"
            return {"error": "raised", "sentence": last, "lines": []}
        return told if isinstance(told, dict) else {}

    def _raised(self, told: dict[str, Any]) -> Failed:
        sentence = str(told.get("sentence", ""))[:2000]
        lines = told.get("lines") or []
        if not lines:
            return Failed(Status.CRASHED, "raised", sentence)
        file, line = str(lines[-1][0]), int(lines[-1][1])
        spot = Feedback(name="raised", sentence=sentence, file=file, line=line)
        return Failed(Status.CRASHED, "raised", f"{file}:{line}: {sentence}", (spot,))

    # Results

    def _failed(self, failed: Failed) -> Assessment:
        return self._assessment(failed.status, failed.reason, failed.sentence, failed.feedback)

    def _passed(self) -> Assessment:
        reduced = any(case.reduced for case in self._task.cases)
        words = "at reduced sizes" if reduced else "at all sizes that were tried"
        sentence = f"right {words}; not timed: there is no GPU."
        if not self._kernels:
            sentence = f"right {words}, without a kernel of its own; not timed: there is no GPU."
        return self._assessment(Status.UNMEASURED, "no_gpu", sentence, ())

    def _assessment(
        self, status: Status, reason: str, sentence: str, feedback: tuple[Feedback, ...]
    ) -> Assessment:
        return Assessment(
            format=self._task.format,
            task=self._task.name,
            solution=self._task.solution.name,
            sha256=self._sha256(),
            status=status,
            reason=reason,
            sentence=sentence,
            stages=tuple(self._stages),
            cases=self._cases,
            feedback=feedback,
            kernels=self._kernels,
            largest_absolute_error=self._errors.get("absolute"),
            largest_relative_error=self._errors.get("relative"),
            not_checked=tuple(self._unseen()),
        )

    def _unseen(self) -> Iterator[str]:
        yield from self._task.not_checked
        if any(case.reduced for case in self._task.cases):
            yield "The problem's own sizes: they were reduced for the emulator."
        yield "Times: nothing was measured."
        if not jail.can_confine():
            yield "Files: this kernel has no Landlock, and the solution's process was not confined."

    def _sha256(self) -> str:
        return hashlib.sha256(repr(sorted(self._task.solution.files.items())).encode()).hexdigest()

    def _keep(self, assessment: Assessment) -> Assessment:
        """For the next solution of the same code."""
        if self._key:
            folder = self._root / ".kernelexp" / KNOWN
            folder.mkdir(parents=True, exist_ok=True)
            content = msgspec.json.encode(assessment)
            wholefile.write((folder / f"{self._key}.json").resolve(), content, durable=False)
        return assessment


def _compiles(task: Task) -> bool:
    """Whether its import may take a compiler."""
    return task.solution.language == "cuda" or any(
        "cpp_extension" in text for text in task.solution.files.values()
    )


_FATAL = ("out-of-bounds", "misaligned", "hang", "trap", "stack", "assertion", "step-limit")


def _of_kernels(executed: Executed) -> Iterator[Feedback]:
    for each in executed.findings[:SHOWN]:
        yield Feedback(
            name=each.name, sentence=each.sentence, file=Path(each.file).name, line=each.line
        )


def _compiler_lines(words: str) -> Iterator[Feedback]:
    """nvcc's errors: file(line): error: text, or file:line:column: error: text."""
    import re

    for match in re.finditer(r"^([^\s:(]+)[(:](\d+)\)?(?::\d+)?: error:? *(.*)$", words, re.M):
        yield Feedback(
            name="compile", sentence=match[3], file=Path(match[1]).name, line=int(match[2])
        )


def _ended(executed: Executed) -> Failed:
    if executed.returncode == -9:
        return Failed(Status.TIMED_OUT, "limit", "the solution was ended at its limit of time.")
    return Failed(
        Status.CRASHED, "ended", f"the solution's process ended with {executed.returncode}."
    )


def _wrong(name: str, reduced: bool, answer: dict[str, Any]) -> Failed:
    later = "the first call is right, and a later one with other inputs is not: "
    where = f"{name}: " if not reduced else f"{name} (smaller than the problem's own sizes): "
    words = f"{where}{later if answer['only_later'] else ''}{answer['sentence']}"
    reason = "stale" if answer["only_later"] else "wrong_result"
    return Failed(Status.INCORRECT, reason, words, (Feedback(name=reason, sentence=words),))


def exit_code(assessed: Assessment) -> int:
    """0 only for what passed every stage that there was."""
    if assessed.reason == "not_executed":
        return errors.ENVIRONMENT
    if assessed.status in (Status.UNMEASURED, Status.IMPROVED, Status.NEUTRAL):
        return errors.OK
    return errors.BUILD if assessed.status is Status.BUILD_FAILED else errors.WRONG_RESULT
