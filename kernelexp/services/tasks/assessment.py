"""What is known of a solution after the stages that it went through, cheapest first."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelexp.model.arm.verdict import Status

StageName = Literal["rules", "build", "known", "emulate", "schedules", "time"]
Outcome = Literal["passed", "failed", "skipped"]
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
    """What became of one set of sizes."""

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
    """Below 1 is faster than the reference."""

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
    not_checked: tuple[str, ...] = ()
    """What this run could not see, in sentences."""

    @property
    def score(self) -> float:
        """Of the sizes that are right, by weight; 0 where the verdict is against it. No time is in
        it."""
        if self.status not in _RIGHT:
            return 0.0
        whole = sum(case.weight for case in self.cases)
        return sum(case.weight for case in self.cases if case.right) / whole if whole else 0.0
