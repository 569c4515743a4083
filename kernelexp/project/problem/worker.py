"""A process that answers from one problem.py: see kernelexp.project.problem.consult."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import ConfigurationError
from kernelexp.model.problem import Problem, Size
from kernelexp.project.problem import consult, files, loader
from kernelexp.project.problem.consult import Consulted, Facts, ProblemQuestion, VariantQuestion
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import Watch
from warpsim.launch import Launch

PRELOAD = ("kernelexp.launch", "kernelexp.problem")


def answer(question: ProblemQuestion, watch: Watch) -> Consulted:
    """Everything that was asked."""
    with watch.stage(question.limit):
        problem = loader.load(Path(question.root), question.kernel)
        sizes = {name: dict(size) for name, size in problem.sizes.items()} | {
            size: consult.require_size(question.kernel, problem.sizes, size)
            for size in question.launches_of
        }
        works = {name: problem.work(size) for name, size in sizes.items()}
        answered = Consulted(
            kernel=question.kernel,
            sizes=sizes,
            peers=problem.peer_names,
            work={name: work for name, work in works.items() if work},
            points=tuple(
                _rules(problem, point)
                if point.exports is None
                else _try_launches(problem, point, point.exports, question, sizes)
                for point in question.points
            ),
        )
    used = files.used(Path(question.root), question.kernel)
    return msgspec.structs.replace(answered, used=used)


def _rules(problem: Problem, point: VariantQuestion) -> Facts:
    terms = problem.terms.get(point.arch, problem.terms)
    return Facts(
        reasons=tuple(problem.constraints(point.axes, point.arch)),
        budget=problem.budget(point.axes, point.arch),
        terms={name: term for name, term in terms.items() if isinstance(term, str)},
    )


def _try_launches(
    problem: Problem,
    point: VariantQuestion,
    exports: dict[str, int],
    question: ProblemQuestion,
    sizes: Mapping[str, Size],
) -> Facts:
    """A size may be beyond one variant, as heads of 128 columns are beyond room for 64."""
    launches: dict[str, tuple[Launch, ...]] = {}
    counts: dict[str, Any] = {"tiles": {}, "loads": {}, "blocks": {}}
    faults: dict[str, str] = {}
    for name in question.launches_of:
        size = sizes[name]
        try:
            own = problem.launches(point.axes, size, exports)
            counted = {kind: getattr(problem, kind)(point.axes, size, exports) for kind in counts}
        except ConfigurationError as error:
            if not question.separately:
                raise
            faults[name] = str(error)
            continue
        launches[name] = own
        for kind, count in counted.items():
            if count is not None:
                counts[kind][name] = count
    return Facts(launches=launches, **counts, faults=faults)


def main() -> None:
    """The question on standard input, the answer on standard output."""
    isolated.serve(ProblemQuestion, answer)
