"""Assessment of a solution after the stages that it went through, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from kernelexp.model.arm import Status

StageName = Literal["rules", "build", "known", "emulate", "schedules", "model", "time"]
Outcome = Literal["passed", "failed", "skipped"]
Where = Literal["emulated", "timed"]
Measure = Literal["files", "sockets", "namespaces", "user"]
_RIGHT = frozenset(
    {Status.IMPROVED, Status.NEUTRAL, Status.REJECTED, Status.INCONCLUSIVE, Status.UNMEASURED}
)
"""Verdicts on solutions whose results were right, as far as there are any."""
SHOWN = 3
"""Pieces of feedback: what matters for the next attempt."""


class AssessmentStage(msgspec.Struct, frozen=True, kw_only=True):
    """One of them; the first that fails is the last that is tried."""

    name: StageName
    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""
    """For machines, where it did not pass."""
    sentence: str = ""


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to change, by the line of the solution that it is about."""

    name: str
    sentence: str
    file: str = ""
    line: int = 0


class CaseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one set of sizes."""

    name: str
    weight: float
    right: bool
    sentence: str = ""
    reduced: dict[str, tuple[int, int]] = {}
    """Sizes that were smaller than the problem's: its own, then the one that was used."""


class ExecutedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel of the solution's that was executed."""

    name: str
    launches: int
    thread_instructions: int


class TaskEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of a solution to the reference: below 1 is faster."""

    ratio: float
    low: float
    high: float


class CaseTime(msgspec.Struct, frozen=True, kw_only=True):
    """One set of sizes, measured on a GPU by another process's clock."""

    name: str
    weight: float
    time_us: float
    """Of a call, host code and all; what a call of nothing takes is subtracted."""
    reference_us: float
    overhead_us: float
    """What a call of nothing takes."""
    ratio: float
    """Time of the solution over that of the reference, with its interval."""
    low: float
    high: float
    floor_us: float
    """No call can take less; 0: not known."""
    floor: str
    """Its arithmetic, or why there is none."""
    processes: int
    calls: int


class ModelledKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A launch as the model of time has it."""

    name: str
    launch: int
    time_us: float


class ModelledCall(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a call by the model of time, which nobody measured: its own launches only."""

    case: str
    """The sizes."""
    chip: str
    time_us: float = 0.0
    """Of all launches, one after the other."""
    kernels: tuple[ModelledKernel, ...] = ()
    refused: str = ""
    """Why there is no time."""


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """The measures that held a solution's process while it was executed there.

    files: it opens what it is given only (Landlock); sockets: it makes none but local ones
    (seccomp); namespaces: its network and its /dev/shm are its own; user: one of its own.
    """

    where: Where
    measures: tuple[Measure, ...] = ()

    def gaps(self) -> Iterator[str]:
        """Yields what the process could have done, in sentences."""
        place = "on the GPU" if self.where == "timed" else "in the emulator"
        if "files" not in self.measures:
            yield f"Files: {place} the solution's process could open those of its user."
        if not {"sockets", "namespaces"} & set(self.measures):
            yield f"Network: {place} the solution's process could use it."
        if self.where == "timed" and "user" not in self.measures:
            yield f"User: {place} the solution's process had the user that judges it."


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """A solution of somebody's problem, judged."""

    format: str
    task: str
    solution: str
    sha256: str
    """Of the solution's text."""
    status: Status
    reason: str
    sentence: str
    stages: tuple[AssessmentStage, ...]
    cases: tuple[CaseAnswer, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    kernels: tuple[ExecutedKernel, ...] = ()
    """None: the result is that of the libraries which the solution calls."""
    largest_absolute_error: float | None = None
    largest_relative_error: float | None = None
    device: str = ""
    """The GPU that times were taken on; empty: none were."""
    times: tuple[CaseTime, ...] = ()
    effect: TaskEffect | None = None
    """Of all sizes by weight: time over the reference's."""
    modelled: ModelledCall | None = None
    """Where it was asked for."""
    confined: tuple[Confinement, ...] = ()
    """By where its code was executed."""
    not_checked: tuple[str, ...] = ()
    """What this run could not see, in sentences."""

    @property
    def score(self) -> float:
        """The share of sizes that are right, by weight; 0 where the verdict is against it. No time
        is in it."""
        if self.status not in _RIGHT:
            return 0.0
        whole = sum(case.weight for case in self.cases)
        return sum(case.weight for case in self.cases if case.right) / whole if whole else 0.0


BUILDS, RIGHT = 0.1, 0.3


def reward(assessed: Assessment) -> float:
    """0.1 for a solution that builds, 0.3 more for a right one with a kernel of its own, and for
    one that was timed the binary logarithm of how much faster it is at least.

    At least: by the end of the interval that is nearer to the reference, so that noise is no
    reward. A cheat gets nothing.
    """
    built = any(stage.name == "build" and stage.outcome == "passed" for stage in assessed.stages)
    if not built or assessed.status is Status.INVALID:
        return 0.0
    right = assessed.score if assessed.kernels else 0.0
    slowest = assessed.effect.high if assessed.effect else 1.0
    return BUILDS + right * (RIGHT + max(0.0, -math.log2(slowest)))
