"""The service of bisect: which commit made a variant slower, wrong, or different in a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from kernelexp.dossier import atrevision
from kernelexp.dossier.atrevision import AtRevision
from kernelexp.dossier.session import Session
from kernelexp.facts import metrics
from kernelexp.facts.metrics import Value
from kernelexp.judge.verdict import DECIDED, WRONG
from kernelexp.model.arm import Arm, Status
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.experiment import Variant
from kernelexp.model.measurement import Measuring
from kernelexp.model.text import quote
from kernelexp.project import Project, revisions
from kernelexp.services.revisions import timeline

TIME, RESULT, BUILD = "time", "result", "build"
UNBUILT = (Status.BUILD_FAILED, Status.IMPOSSIBLE)

Side: TypeAlias = Literal["good", "bad", "skipped"]
Judge: TypeAlias = Callable[[AtRevision], tuple[Side, str]]
"""On which side a revision is, and why, in a few words."""


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The revisions to look between, and the figure whose change to look for."""

    good: str
    bad: str
    by: str = TIME
    """`time`, `result`, `build` or the name of a figure."""
    measuring: Measuring = Measuring()


class BisectStep(msgspec.Struct, frozen=True, kw_only=True):
    """A revision that was looked at."""

    commit: str
    subject: str
    side: Side
    sentence: str


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bisection, with all that was looked at, in that order."""

    by: str
    commits: int
    """After the good one, the bad one included."""
    steps: tuple[BisectStep, ...]
    first_bad: tuple[BisectStep, ...] = ()
    """One commit; several, oldest first, where those between could not be judged; none where the
    ends do not differ."""
    files: tuple[str, ...] = ()
    """That the commit changed, where it is one."""


def bisect(
    project: Project, variant: Variant, request: BisectRequest, session: Session
) -> Bisected:
    """Finds the first revision, along first parents, that is on the side of the bad one.

    It takes for granted that no revision is good again after one that is bad. UsageError for
    revisions that are none, or where the good one is not an ancestor of the bad one;
    EnvironmentFault where times are asked for and there is no GPU.
    """
    commits = revisions.resolve_range(project.root, f"{request.good}..{request.bad}")
    if len(commits) < 2:
        raise UsageError("--good and --bad are the same revision: name two.")
    look = _Looking(project, variant, request, session, commits)
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
        self,
        project: Project,
        variant: Variant,
        request: BisectRequest,
        session: Session,
        commits: Sequence[str],
    ) -> None:
        self._project, self._variant = project, variant
        self._request, self._session = request, session
        self._commits = commits
        emulate = request.by == RESULT or metrics.kind_of(request.by) == "emulated"
        self._examining = msgspec.structs.replace(session, emulate=emulate)
        if request.by == TIME:
            _require_gpu(variant, session)
        elif request.by not in (RESULT, BUILD) and not _is_figure(request.by):
            raise UsageError(
                f"--by {quote(request.by)} should be {TIME}, {RESULT}, {BUILD} or the name of a "
                "built or emulated figure, as in launch__registers_per_thread."
            )
        self._steps: list[BisectStep] = []
        self.sides: dict[int, Side] = {}
        self._judge: Judge

    def ends_differ(self) -> bool:
        """Looks at both ends."""
        good, bad = self._examine(0), self._examine(len(self._commits) - 1)
        request = self._request
        if request.by == TIME:
            self._judge = _ByTime(self._project, self._variant, good, bad, request, self._session)
        elif request.by == RESULT:
            self._judge = _by_result
        elif request.by == BUILD:
            self._judge = _by_build
        else:
            self._judge = _ByFigure(request.by, good, bad)
        sides = [self._note(0, good), self._note(len(self._commits) - 1, bad)]
        return sides == ["good", "bad"]

    def at(self, place: int) -> Side:
        return self._note(place, self._examine(place))

    def _examine(self, place: int) -> AtRevision:
        commit, size = self._commits[place], self._request.measuring.size
        return atrevision.examine(self._project, commit, self._variant, self._examining, size)

    def _note(self, place: int, revision: AtRevision) -> Side:
        side, sentence = self._judge(revision)
        step = BisectStep(
            commit=revision.commit, subject=revision.subject, side=side, sentence=sentence
        )
        self.sides[place] = side
        self._steps.append(step)
        return side

    def answer(self, places: Sequence[int]) -> Bisected:
        """Returns the result; `places` are those of revisions that may be the first bad one."""
        known = {step.commit: step for step in self._steps}
        first = [known[self._commits[place]] for place in places]
        files = revisions.files_of(self._project.root, first[0].commit) if len(first) == 1 else []
        return Bisected(
            by=self._request.by,
            commits=len(self._commits) - 1,
            steps=tuple(self._steps),
            first_bad=tuple(first),
            files=tuple(files),
        )


def _require_gpu(variant: Variant, session: Session) -> None:
    gpus = session.executor.gpus().of(variant.arch)
    if not gpus.devices:
        raise EnvironmentFault(
            f"nothing can be timed: {gpus.why_none} Look for something else, as in "
            f"--by {RESULT} or --by launch__registers_per_thread."
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
        self._good, self._bad = (_read(name, revision.arm) for revision in (good, bad))

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
        request: BisectRequest,
        session: Session,
    ) -> None:
        self._project, self._variant = project, variant
        self._request, self._session = request, session
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
        record = timeline.compare(
            self._project,
            self._variant,
            [(self._good.arm, self._good.launches), (revision.arm, revision.launches)],
            self._session,
            measuring=self._request.measuring,
        )
        verdict = record.candidates[0].verdict
        status, sentence = verdict.status, verdict.sentence
        if revision.commit == self._bad.commit:
            self._wanted = status if status in (Status.REJECTED, Status.IMPROVED) else None
        if status not in DECIDED:
            return "skipped", f"{status}: {sentence}"
        return ("bad" if status is self._wanted else "good"), sentence
