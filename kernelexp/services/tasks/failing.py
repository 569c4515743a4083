"""End of a cascade: a stage that did not pass, with what to change in the solution."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

from kernelexp.model.arm import Status
from kernelexp.services.execution import Executed
from kernelexp.services.tasks.assessment import SHOWN, Feedback
from kernelexp.services.tasks.problem_process import JudgedCase
from kernelexp.services.tasks.task import SolutionReport

OUR_CALL = re.compile(r" of callproc\.c:\d+")
"""Where an array was allocated for the solution: by ctypes, which says nothing to its author."""


class TaskFailed(Exception):
    """A stage that did not pass."""

    def __init__(
        self, status: Status, reason: str, sentence: str, feedback: tuple[Feedback, ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status, self.reason, self.sentence = status, reason, sentence
        self.feedback = feedback


FATAL = ("out-of-bounds", "misaligned", "hang", "trap", "stack", "assertion", "step-limit")


def plain(sentence: str) -> str:
    return OUR_CALL.sub("", sentence)


def of_kernels(executed: Executed) -> Iterator[Feedback]:
    for finding in executed.findings[:SHOWN]:
        yield Feedback(
            name=finding.name,
            sentence=plain(finding.sentence),
            file=Path(finding.file).name,
            line=finding.line,
        )


def compiler_lines(words: str) -> Iterator[Feedback]:
    """nvcc's errors: file(line): error: text, or file:line:column: error: text."""
    for match in re.finditer(r"^([^\s:(]+)[(:](\d+)\)?(?::\d+)?: error:? *(.*)$", words, re.M):
        yield Feedback(
            name="compile", sentence=match[3], file=Path(match[1]).name, line=int(match[2])
        )


def raise_if_killed(executed: Executed) -> None:
    """A process that a signal ended; one that ends with a code may have given its answers."""
    if -executed.returncode in (signal.SIGKILL, signal.SIGXCPU):
        raise TaskFailed(Status.TIMED_OUT, "limit", "the solution was ended at its limit of time.")
    if executed.returncode < 0:
        name = signal.Signals(-executed.returncode).name
        raise TaskFailed(Status.CRASHED, "signal", f"the solution was ended by {name}.")


def wrong(name: str, reduced: bool, answer: JudgedCase) -> TaskFailed:
    later = "the first call is right, and a later one with other inputs is not: "
    where = f"{name}: " if not reduced else f"{name} (smaller than the problem's own sizes): "
    words = f"{where}{later if answer.only_later else ''}{answer.sentence}"
    reason = "stale" if answer.only_later else "wrong_result"
    return TaskFailed(Status.INCORRECT, reason, words, (Feedback(name=reason, sentence=words),))


def raised(report: SolutionReport) -> TaskFailed:
    sentence = report.sentence[:2000]
    if report.error == "build":
        spots = tuple(compiler_lines(report.sentence))
        return TaskFailed(Status.BUILD_FAILED, "compile", sentence, spots)
    if not report.lines:
        return TaskFailed(Status.CRASHED, "raised", sentence)
    file, line = report.lines[-1]
    spot = Feedback(name="raised", sentence=sentence, file=file, line=line)
    return TaskFailed(Status.CRASHED, "raised", f"{file}:{line}: {sentence}", (spot,))
