"""KernelBench: a file with `Model`, `get_inputs` and `get_init_inputs`; the solution's has
`ModelNew`."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from kernelexp.model.errors import ConfigurationError
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

NAME = "kernelbench"
FILE, SOLUTION, ENTRY = "problem.py", "solution.py", "ModelNew"
TOLERANCE = {"float16": 1e-2, "bfloat16": 1e-2}
"""Relative and absolute, by the type of the reference's result; of others as below."""
OF_OTHERS = 1e-4
_WEIGHTS = "weights"


def recognises(path: Path) -> bool:
    if path.suffix != ".py":
        return False
    text = path.read_text(errors="replace")
    return bool(re.search(r"^class Model\b", text, re.M)) and "def get_inputs" in text


def read(path: Path, solution: Path, largest: int) -> Task:
    text = path.read_text()
    smaller, reduced = _reduce(path, text, largest)
    case = TaskCase(name="reduced" if reduced else "its own sizes", reduced=reduced)
    return Task(
        format=NAME,
        name=path.stem,
        files={FILE: smaller},
        cases=(case,),
        solution=Solution(
            name=solution.stem,
            files={solution.name: _same_sizes(solution.read_text(), reduced)},
            main=solution.name,
            entry=ENTRY,
        ),
    )


def _reduce(path: Path, text: str, largest: int) -> tuple[str, dict[str, tuple[int, int]]]:
    """The module's constants made smaller, where they are whole numbers, line by line."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise ConfigurationError(f"{path}:{error.lineno}: {error.msg}.") from None
    lines, reduced = text.split("\n"), {}
    for statement in body:
        named = _constant(statement)
        if named is None:
            continue
        name, own = named
        smaller = tuple(shrink(size, largest) for size in own)
        if smaller != own:
            reduced.update(_changes(name, own, smaller))
            is_tuple = isinstance(getattr(statement, "value", None), ast.Tuple)
            value = smaller if is_tuple else smaller[0]
            lines[statement.lineno - 1] = f"{name} = {value}"
            for line in range(statement.lineno, statement.end_lineno or statement.lineno):
                lines[line] = ""
    return "\n".join(lines), reduced


def _changes(
    name: str, own: tuple[int, ...], smaller: tuple[int, ...]
) -> dict[str, tuple[int, int]]:
    names = [name] if len(own) == 1 else [f"{name}[{place}]" for place in range(len(own))]
    pairs = zip(names, own, smaller, strict=True)
    return {item: (one, other) for item, one, other in pairs if one != other}


def _constant(statement: ast.stmt) -> tuple[str, tuple[int, ...]] | None:
    """`N = 2048 * 2` as its name and its value; `shape = (4, 8)` too."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    allowed = (ast.BinOp, ast.Constant, ast.operator, ast.Tuple, ast.Load)
    plain = all(isinstance(node, allowed) for node in ast.walk(statement.value))
    if not plain or not isinstance(target, ast.Name):
        return None
    try:
        value = eval(compile(ast.Expression(statement.value), "", "eval"), {"__builtins__": {}})
    except (ArithmeticError, TypeError, ValueError):
        return None
    values = value if isinstance(value, tuple) else (value,)
    return (target.id, values) if values and all(type(v) is int for v in values) else None


def _same_sizes(text: str, reduced: dict[str, tuple[int, int]]) -> str:
    """A solution often repeats the problem's constants: those of the same name and value."""
    for name, (own, smaller) in reduced.items():
        text = re.sub(
            rf"^{re.escape(name)} *= *{own}\b(?! *[-+*/])", f"{name} = {smaller}", text, flags=re.M
        )
    return text


class _KernelBenchProblem:
    def __init__(self, module: Any) -> None:
        self._module = module
        self._seed = 0
        self._model: Any = None
        self.errors = compare.Errors()

    def preparation(self) -> Values:
        """Arguments of the constructor, and the seed of the weights."""
        import torch

        self._seed = torch.seed() % (1 << 31)
        given = self._initial()
        torch.manual_seed(self._seed)
        self._model = self._module.Model(*given).eval()
        return {"initial": given, "seed": self._seed, _WEIGHTS: dict(self._model.state_dict())}

    def _initial(self) -> list[Any]:
        make = getattr(self._module, "get_init_inputs", None)
        return list(make()) if make else []

    def arguments(self, case: TaskCase, seed: int) -> Values:
        import torch

        torch.manual_seed(seed)
        return {str(index): value for index, value in enumerate(self._module.get_inputs())}

    def expected(self, case: TaskCase, arguments: Values) -> Any:
        import torch

        with torch.no_grad():
            return self._model(*arguments.values())

    def compare(self, case: TaskCase, arguments: Values, expected: Any, actual: Any) -> str:
        tolerance = TOLERANCE.get(str(getattr(expected, "dtype", ""))[6:], OF_OTHERS)
        return compare.disagreement(expected, actual, tolerance, tolerance, self.errors)


def open_problem(task: Task, folder: Path) -> TaskProblem:
    return _KernelBenchProblem(importing.module(folder / FILE, ("Model", "get_inputs")))


def open_solution(task: Task, folder: Path, prepared: Values) -> Call:
    return _open(folder / task.solution.main, ENTRY, prepared)


def open_reference(task: Task, folder: Path, prepared: Values) -> Call:
    return _open(folder / FILE, "Model", prepared)


def _open(path: Path, entry: str, prepared: Values) -> Call:
    """Its weights are drawn with the reference's seed, and copied where they have its names."""
    import torch

    module = importing.module(path, (entry,))
    torch.manual_seed(prepared["seed"])
    model = getattr(module, entry)(*prepared["initial"]).eval()
    own, given = model.state_dict(), prepared[_WEIGHTS]
    if {k: v.shape for k, v in own.items()} == {k: v.shape for k, v in given.items()}:
        model.load_state_dict(given)

    def call(arguments: Values) -> Any:
        with torch.no_grad():
            return model(*arguments.values())

    return call
