"""The service of bisect: which commit made a variant slower, wrong, or different in a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from kernelexp.dossier import atrevision
from kernelexp.dossier.atrevision import AtRevision
from kernelexp.evidence.executor import Executor, Local
from kernelexp.evidence.measure.measured import Measuring
from kernelexp.facts import metrics
from kernelexp.facts.metrics import Value
from kernelexp.judge.verdict import WRONG
from kernelexp.model.arm import Arm, Status
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.limits import Limits
from kernelexp.model.progress import OnProgress
from kernelexp.model.text import quote
from kernelexp.model.variant import Variant
from kernelexp.project import Project, revisions
from kernelexp.services.revisions import sidebyside
from kernelexp.services.run import timing
from kernelexp.system.toolchain import Toolchain

TIME, RESULT, BUILD = "time", "result", "build"
UNBUILT = (Status.BUILD_FAILED, Status.IMPOSSIBLE)

Side: TypeAlias = Literal["good", "bad", "skipped"]
Judge: TypeAlias = Callable[[AtRevision], tuple[Side, str]]
"""On which side a revision is, and why, in a few words."""


class BisectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, as the command line says it."""

    good: str
    bad: str
    by: str = TIME
    """TIME, RESULT, BUILD, or the name of a built or emulated figure."""
    tools: Toolchain
    measuring: Measuring = Measuring()
    limits: Limits = Limits()
    executor: Executor = Local()
    on_progress: OnProgress | None = None


class BisectStep(msgspec.Struct, frozen=True, kw_only=True):
    """A revision that was looked at."""

    commit: str
    subject: str
    side: Side
    sentence: str


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, with all that was looked at, in that order."""

    by: str
    commits: int
    """After the good one, the bad one included."""
    steps: tuple[BisectStep, ...]
    first_bad: tuple[BisectStep, ...] = ()
    """One commit; several, oldest first, where those between could not be judged; none where the
    ends do not differ."""
    files: tuple[str, ...] = ()
    """That the commit changed, where it is one."""


def bisect(project: Project, variant: Variant, asked: BisectOptions) -> Bisected:
    """Finds the first revision, along first parents, that is on the side of the bad one.

    It takes for granted that no revision is good again after one that is bad. UsageError for
    revisions that are none, or where the good one is no ancestor of the bad one; EnvironmentFault
    where times are asked for and there is no GPU.
    """
    commits = revisions.resolve_range(project.root, f"{asked.good}..{asked.bad}")
    if len(commits) < 2:
        raise UsageError("--good and --bad are the same revision: name two.")
    look = _Looking(project, variant, asked, commits)
    if not look.ends_differ():
        return look.answer(())
    low, high = 0, len(commits) - 1
    while waiting := [place for place in range(low + 1, high) if place not in look.sides]:
        middle = min(waiting, key=lambda place: abs(2 * place - low - high))
        side = look.at(middle)
        if side == "good":
            low = middle
        elif side == "bad":
            high = middle
    return look.answer(range(low + 1, high + 1))


class _Looking:
    """The revisions of one bisection, each looked at once."""

    def __init__(
        self, project: Project, variant: Variant, asked: BisectOptions, commits: Sequence[str]
    ) -> None:
        self._project, self._variant, self._asked = project, variant, asked
        self._commits = commits
        self._how = atrevision.RevisionOptions(
            tools=asked.tools,
            limits=asked.limits,
            emulate=asked.by == RESULT or metrics.kind_of(asked.by) == "emulated",
            size=asked.measuring.size,
            on_progress=asked.on_progress,
        )
        if asked.by == TIME:
            _require_gpu(variant, asked)
        elif asked.by not in (RESULT, BUILD) and not _is_figure(asked.by):
            raise UsageError(
                f"--by {quote(asked.by)} should be {TIME}, {RESULT}, {BUILD} or the name of a "
                "built or emulated figure, as in launch__registers_per_thread."
            )
        self._steps: list[BisectStep] = []
        self.sides: dict[int, Side] = {}
        self._judge: Judge

    def ends_differ(self) -> bool:
        """Looks at both ends."""
        good, bad = self._examine(0), self._examine(len(self._commits) - 1)
        asked = self._asked
        if asked.by == TIME:
            self._judge = _ByTime(self._project, self._variant, good, bad, asked)
        elif asked.by == RESULT:
            self._judge = _by_result
        elif asked.by == BUILD:
            self._judge = _by_build
        else:
            self._judge = _ByFigure(asked.by, good, bad)
        sides = [self._note(0, good), self._note(len(self._commits) - 1, bad)]
        return sides == ["good", "bad"]

    def at(self, place: int) -> Side:
        return self._note(place, self._examine(place))

    def _examine(self, place: int) -> AtRevision:
        return atrevision.examine(self._project, self._commits[place], self._variant, self._how)

    def _note(self, place: int, revision: AtRevision) -> Side:
        side, sentence = self._judge(revision)
        step = BisectStep(
            commit=revision.commit, subject=revision.subject, side=side, sentence=sentence
        )
        self.sides[place] = side
        self._steps.append(step)
        return side

    def answer(self, places: Sequence[int]) -> Bisected:
        """With the places of the revisions any of which may be the first bad one."""
        known = {step.commit: step for step in self._steps}
        first = [known[self._commits[place]] for place in places]
        files = revisions.files_of(self._project.root, first[0].commit) if len(first) == 1 else []
        return Bisected(
            by=self._asked.by,
            commits=len(self._commits) - 1,
            steps=tuple(self._steps),
            first_bad=tuple(first),
            files=tuple(files),
        )


def _require_gpu(variant: Variant, asked: BisectOptions) -> None:
    cards = timing.cards(asked.executor.gpus(), variant.arch)
    if isinstance(cards, str):
        raise EnvironmentFault(
            f"nothing can be timed: {cards} Look for something else, as in --by {RESULT} or "
            "--by launch__registers_per_thread."
        )


def _is_figure(name: str) -> bool:
    return metrics.kind_of(name) in ("built", "emulated")


# ---- judges --------------------------------------------------------------------------------------


def _by_build(revision: AtRevision) -> tuple[Side, str]:
    arm = revision.arm
    if arm is None:
        return "skipped", revision.why
    if arm.refused and arm.refused.status in UNBUILT:
        return "bad", revision.fault
    return "good", "builds"


def _by_result(revision: AtRevision) -> tuple[Side, str]:
    arm = revision.arm
    if arm and arm.refused and arm.refused.status in WRONG:
        return "bad", revision.fault
    if why := revision.fault:
        return "skipped", why
    if arm is None or arm.emulated is None or arm.emulated.unsupported:
        return "skipped", "could not be emulated"
    return "good", "its result is right"


class _ByFigure:
    """A revision is on the side whose value is nearer."""

    def __init__(self, name: str, good: AtRevision, bad: AtRevision) -> None:
        self._name = name
        self._good, self._bad = (_read(name, each.arm) for each in (good, bad))

    def __call__(self, revision: AtRevision) -> tuple[Side, str]:
        value = _read(self._name, revision.arm)
        if value is None:
            return "skipped", revision.fault or f"has no {self._name}"
        words = f"{value:,}" if isinstance(value, int) else str(value)
        if value == self._good:
            return "good", words
        if value == self._bad:
            return "bad", words
        if isinstance(value, str) or not _are_numbers(self._good, self._bad):
            return "skipped", words
        to_good, to_bad = (abs(value - float(end or 0)) for end in (self._good, self._bad))
        return ("good" if to_good <= to_bad else "bad"), words


def _read(name: str, arm: Arm | None) -> Value | None:
    return metrics.read(name, arm) if arm else None


def _are_numbers(*values: Value | None) -> bool:
    return all(isinstance(value, int | float) for value in values)


class _ByTime:
    """A revision is bad if its verdict against the good one, timed with it in the same processes,
    is that of the bad one. Code that is known needs no timing."""

    def __init__(
        self,
        project: Project,
        variant: Variant,
        good: AtRevision,
        bad: AtRevision,
        asked: BisectOptions,
    ) -> None:
        self._project, self._variant, self._asked = project, variant, asked
        self._good, self._bad = good, bad
        self._known: dict[str, tuple[Side, str]] = {}
        self._wanted: Status | None = None

    def __call__(self, revision: AtRevision) -> tuple[Side, str]:
        if why := revision.fault:
            return "skipped", why
        if revision.code == self._good.code:
            return "good", "the good revision's code" if revision != self._good else "the baseline"
        if revision.code in self._known:
            side, sentence = self._known[revision.code]
            return side, f"code that is known: {sentence}"
        answer = self._time(revision)
        self._known[revision.code] = answer
        return answer

    def _time(self, revision: AtRevision) -> tuple[Side, str]:
        if self._good.arm is None or revision.arm is None or self._good.arm.refused:
            return "skipped", f"the good revision can't be timed: {self._good.fault}"
        asked = self._asked
        made = sidebyside.compare(
            self._project,
            self._variant,
            [(self._good.arm, self._good.launches), (revision.arm, revision.launches)],
            asked.tools,
            asked.measuring,
            asked.limits,
            asked.executor,
            asked.on_progress,
        )
        verdict = made.candidates[0].verdict
        status, sentence = verdict.status, verdict.sentence
        if revision.commit == self._bad.commit:
            self._wanted = status if status in (Status.REJECTED, Status.IMPROVED) else None
        if status not in (Status.REJECTED, Status.IMPROVED, Status.NEUTRAL):
            return "skipped", f"{status}: {sentence}"
        return ("bad" if status is self._wanted else "good"), sentence
