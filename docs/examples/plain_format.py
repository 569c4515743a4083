"""A format of one's own: a file with SIZES, inputs(n) and reference(x); solutions have solve(x).

Put into kernelexp/services/tasks/formats/, with its name in FORMATS there.
"""

from pathlib import Path
from typing import Any

from kernelexp.services.tasks.formats import compare, importing
from kernelexp.services.tasks.task import (
    Call,
    Solution,
    Task,
    TaskCase,
    TaskProblem,
    Values,
    shrink,
)

NAME = "plain"
FILE, ENTRY = "plain_problem.py", "solve"


def recognises(path: Path) -> bool:
    return path.name == FILE


def read(path: Path, solution: Path, largest: int) -> Task:
    text = path.read_text()
    sizes = next(line for line in text.splitlines() if line.startswith("SIZES = "))
    cases = []
    for own in map(int, sizes.removeprefix("SIZES = ").strip("[]").split(",")):
        n = shrink(own, largest)
        reduced = {"n": (own, n)} if n != own else {}
        cases.append(TaskCase(name=f"n={n}", parameters={"n": n}, reduced=reduced))
    files = {solution.name: solution.read_text()}
    solved = Solution(name=solution.stem, files=files, main=solution.name, entry=ENTRY)
    return Task(
        format=NAME, name=path.stem, files={FILE: text}, cases=tuple(cases), solution=solved
    )


class _Problem:
    def __init__(self, module: Any) -> None:
        self._module, self.errors = module, compare.Errors()

    def preparation(self) -> Values:
        return {}

    def arguments(self, case: TaskCase, seed: int) -> Values:
        import torch

        torch.manual_seed(seed)
        return {"x": self._module.inputs(case.parameters["n"])}

    def expected(self, case: TaskCase, arguments: Values) -> Any:
        return self._module.reference(**arguments)

    def compare(self, case: TaskCase, arguments: Values, expected: Any, actual: Any) -> str:
        return compare.disagreement(expected, actual, 1e-5, 1e-6, self.errors)


def open_problem(task: Task, folder: Path) -> TaskProblem:
    return _Problem(importing.module(folder / FILE, ("inputs", "reference")))


def open_solution(task: Task, folder: Path, prepared: Values) -> Call:
    solve = importing.module(folder / task.solution.main, (ENTRY,)).solve
    return lambda arguments: solve(**arguments)


def open_reference(task: Task, folder: Path, prepared: Values) -> Call:
    reference = importing.module(folder / FILE, ("reference",)).reference
    return lambda arguments: reference(**arguments)
