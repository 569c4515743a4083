"""A process that answers from one problem.py: see kernelexp.project.problem.consult."""

from __future__ import annotations

from pathlib import Path

from kernelexp.model.errors import ConfigurationError
from kernelexp.model.problem import Problem
from kernelexp.project.problem import consult, loader
from kernelexp.project.problem.consult import Consulted, Facts, Point, ProblemQuestion
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import Watch


def answer(question: ProblemQuestion, watch: Watch) -> Consulted:
    """Everything that was asked."""
    with watch.stage(question.limit):
        problem = loader.load(Path(question.root), question.kernel)
        for size in question.launches_of:
            consult.require_size(question.kernel, problem.sizes, size)
        works = {name: problem.work(size) for name, size in problem.sizes.items()}
        return Consulted(
            kernel=question.kernel,
            sizes={name: dict(size) for name, size in problem.sizes.items()},
            peers=problem.peer_names,
            work={name: work for name, work in works.items() if work},
            points=tuple(
                _rules(problem, point)
                if point.exports is None
                else _try_launches(problem, point, point.exports, question)
                for point in question.points
            ),
        )


def _rules(problem: Problem, point: Point) -> Facts:
    terms = problem.terms.get(point.arch, problem.terms)
    return Facts(
        reasons=tuple(problem.constraints(point.axes, point.arch)),
        budget=problem.budget(point.axes, point.arch),
        terms={name: term for name, term in terms.items() if isinstance(term, str)},
    )


def _try_launches(
    problem: Problem, point: Point, exports: dict[str, int], question: ProblemQuestion
) -> Facts:
    try:
        return _launches(problem, point, exports, question.launches_of)
    except ConfigurationError as error:
        if not question.separately:
            raise
        return Facts(fault=str(error))


def _launches(
    problem: Problem, point: Point, exports: dict[str, int], names: tuple[str, ...]
) -> Facts:
    sizes = {name: problem.sizes[name] for name in names}
    tiles = {name: problem.tiles(point.axes, size, exports) for name, size in sizes.items()}
    return Facts(
        launches={
            name: problem.launches(point.axes, size, exports) for name, size in sizes.items()
        },
        tiles={name: count for name, count in tiles.items() if count is not None},
    )


def main() -> None:
    """The question on standard input, the answer on standard output."""
    isolated.serve(ProblemQuestion, answer)
