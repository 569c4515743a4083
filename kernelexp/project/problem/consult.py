"""Asks a kernel's problem.py, in a process of its own, about sizes and variants."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import ConfigurationError
from kernelexp.model.experiment import Placed
from kernelexp.model.problem import Budget, Work
from kernelexp.model.spelling import AxisValue, resolve_size, settings_of_size
from kernelexp.project.problem import files
from kernelexp.project.problem.reads import Used
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import TimeLimit
from warpsim.launch import Launch

TIMEOUT_S = 60.0


def limit(seconds: float = TIMEOUT_S) -> TimeLimit:
    """Returns the time limit for each stage of a problem.py."""
    return TimeLimit(name="problem", seconds=seconds)


class VariantQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One variant in a question, by its place; one that is built has exports."""

    axes: dict[str, AxisValue]
    arch: str
    exports: dict[str, int] | None = None


class ProblemQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """All that a command wants to know of one problem.py."""

    root: str
    kernel: str
    points: tuple[VariantQuestion, ...]
    launches_of: tuple[str, ...]
    separately: bool
    """Whether launches of a size that can't be had are left out, with why, instead of ending the
    whole answer."""
    limit: TimeLimit


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of problem.py for one variant: rules before the build, with those of its config
    header, and launches after it."""

    reasons: tuple[str, ...] = ()
    budget: Budget | None = None
    budget_of: str = "budget()"
    """Where the budget comes from."""
    failure: str = ""
    """Why the host compiler could not read the kernel's config header."""
    terms: dict[str, str] = {}
    """How its exports come about: see TERMS in kernelexp.model.problem."""
    launches: dict[str, tuple[Launch, ...]] = {}
    """By the name of the size: those of a job in their order."""
    tiles: dict[str, int] = {}
    loads: dict[str, int] = {}
    blocks: dict[str, int] = {}
    """Tiles that load what others keep, where the problem says so."""
    faults: dict[str, str] = {}
    """Why those of a size can't be had, by its name."""

    def launch_of(self, size: str) -> tuple[Launch, ...]:
        """ConfigurationError where there is none of this size."""
        if size not in self.launches:
            raise ConfigurationError(self.faults.get(size, f"there is no launch of size {size!r}."))
        return self.launches[size]


class Consulted(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one problem.py; `points` in the order of the question."""

    kernel: str
    sizes: dict[str, dict[str, int]]
    peers: tuple[str, ...]
    work: dict[str, Work]
    """By the name of the size; empty where the problem does not say."""
    points: tuple[Facts, ...]
    used: Used = Used()


def consult(
    root: Path,
    kernel: str,
    variants: Sequence[Placed] = (),
    launches_of: Iterable[str] = (),
    timeout_s: float = TIMEOUT_S,
    *,
    exports: Sequence[dict[str, int]] | None = None,
    separately: bool = False,
) -> Consulted:
    """Reasons against and budget of each variant; or, with the `exports` of each, which its build
    has, its launches of the sizes `launches_of`, and their tiles.

    ConfigurationError for a fault of problem.py, but for one of a variant's launches where they are
    to be had `separately`; UsageError for a size that it does not have. What was answered before in
    this process is not asked again while all that problem.py depends on is the same.
    """
    every: Sequence[dict[str, int] | None] = exports or [None] * len(variants)
    question = ProblemQuestion(
        root=str(root),
        kernel=kernel,
        points=tuple(
            VariantQuestion(axes=dict(variant.axes), arch=variant.arch, exports=figures)
            for variant, figures in zip(variants, every, strict=True)
        ),
        launches_of=tuple(launches_of),
        separately=separately,
        limit=limit(timeout_s),
    )
    key = _key(root, kernel)
    known = _answered(root, kernel, key)
    if (earlier := known.find(question)) is not None:
        return earlier
    name = f"variants/{kernel}/problem.py"
    worker = "kernelexp.project.problem.worker"
    answer = isolated.call(worker, question, Consulted, name, (question.limit,))
    files.note(root, kernel, answer.used)
    if key and _key(root, kernel) == key:  # nothing changed meanwhile, and nothing new was read
        known.keep(question, answer)
    return answer


def _key(root: Path, kernel: str) -> str:
    """Empty where a file can't be read, of which the process that loads it has a sentence."""
    try:
        return files.key(root, kernel)
    except OSError:
        return ""


class _Answers:
    """The answers of one problem.py so far, by what each depends on: sizes that are not its own by
    the question's, each point's facts by the point and how its launches were asked for.
    """

    def __init__(self) -> None:
        self._all: dict[tuple[str, ...], Consulted] = {}
        self._facts: dict[bytes, Facts] = {}

    def keep(self, question: ProblemQuestion, answer: Consulted) -> None:
        self._all[_further_sizes(question)] = answer
        self._facts.update(zip(_keys(question), answer.points, strict=True))

    def find(self, question: ProblemQuestion) -> Consulted | None:
        answer = self._all.get(_further_sizes(question))
        points = [self._facts.get(key) for key in _keys(question)]
        facts = tuple(point for point in points if point is not None)
        if answer is None or len(facts) < len(points):
            return None
        return msgspec.structs.replace(answer, points=facts)


def _further_sizes(question: ProblemQuestion) -> tuple[str, ...]:
    return tuple(name for name in question.launches_of if settings_of_size(name) is not None)


def _keys(question: ProblemQuestion) -> list[bytes]:
    how = (question.launches_of, question.separately)
    return [
        msgspec.json.encode((point, None if point.exports is None else how))
        for point in question.points
    ]


@functools.lru_cache(maxsize=32)
def _answered(_root: Path, _kernel: str, _key: str) -> _Answers:
    return _Answers()


def require_size(kernel: str, known: Mapping[str, Mapping[str, int]], size: str) -> dict[str, int]:
    """The parameters of a size of a kernel, by its name or by what it sets of the full one."""
    return resolve_size(f"variants/{kernel}/problem.py", known, size)
