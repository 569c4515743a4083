"""GPU MODE: a folder with `task.yml` and `reference.py`; the solution's file has
`custom_kernel(data)`."""

from __future__ import annotations

import inspect
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
    shrink_all,
)

NAME = "gpumode"
FILE, REFERENCE, SUBMISSION, ENTRY = "task.yml", "reference.py", "submission.py", "custom_kernel"
_SUBMITTED = "@SUBMISSION@"
_SEED, _DATA, _KERNEL = "seed", "data", "ref_kernel"


def recognises(path: Path) -> bool:
    folder = path if path.is_dir() else path.parent
    named = path.is_dir() or path.name in (FILE, REFERENCE)
    return named and (folder / FILE).is_file() and (folder / REFERENCE).is_file()


def read(path: Path, solution: Path, largest: int) -> Task:
    folder = path if path.is_dir() else path.parent
    result = _yaml(folder / FILE)
    files = _files(folder, result)
    cases, timed = (_cases(result.get(name), largest) for name in ("tests", "benchmarks"))
    if not cases:
        raise ConfigurationError(f"{folder / FILE} has no tests: a list of sizes is needed.")
    beside = {name: text for name, text in files.items() if name not in (REFERENCE, "eval.py")}
    return Task(
        format=NAME,
        name=folder.resolve().name,
        files=files,
        cases=cases,
        timed=timed,
        solution=Solution(
            name=solution.stem,
            files={**beside, SUBMISSION: solution.read_text()},
            main=SUBMISSION,
            entry=ENTRY,
        ),
    )


def _cases(content: Any, largest: int) -> tuple[TaskCase, ...]:
    cases: dict[str, TaskCase] = {}
    for test in (test for test in content or [] if isinstance(test, dict)):
        case = shrink_all({k: v for k, v in test.items() if k != _SEED}, largest)
        if case.name not in cases or cases[case.name].reduced:
            cases[case.name] = case
    return tuple(cases.values())


def _yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        result = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: {str(error).splitlines()[0]}.") from None
    if not isinstance(result, dict):
        raise ConfigurationError(f"{path} should be a mapping with tests and files.")
    return result


def _files(folder: Path, content: dict[str, Any]) -> dict[str, str]:
    """Returns the files that the task names, by the names that they have when it runs."""
    files = {REFERENCE: (folder / REFERENCE).read_text()}
    for item in content.get("files") or []:
        source = folder / str(item["source"])
        if item["source"] == _SUBMITTED or source.name == "eval.py":
            continue
        if not source.is_file():
            raise ConfigurationError(f"{folder / FILE} names {item['source']}, which is not there.")
        files[str(item["name"])] = source.read_text()
    return files


class _GpuModeProblem:
    def __init__(self, module: Any) -> None:
        self._module = module
        self.errors = compare.Errors()

    def preparation(self) -> Values:
        return {}

    def arguments(self, case: TaskCase, seed: int) -> Values:
        generate = self._module.generate_input
        known = inspect.signature(generate).parameters
        given = {**case.parameters, **({_SEED: seed} if _SEED in known else {})}
        return {_DATA: generate(**given)}

    def expected(self, case: TaskCase, arguments: Values) -> Any:
        """Their check computes it from the inputs."""
        return None

    def compare(self, case: TaskCase, arguments: Values, expected: Any, actual: Any) -> str:
        result = self._module.check_implementation(arguments[_DATA], actual)
        if isinstance(result, tuple):
            good, *words = result
            return "" if good else " ".join(map(str, words)) or "check_implementation says no."
        if isinstance(result, bool):
            return "" if result else "check_implementation says no."
        return str(result or "")


def open_problem(task: Task, folder: Path) -> TaskProblem:
    needed = ("generate_input", "check_implementation")
    return _GpuModeProblem(importing.module(folder / REFERENCE, needed))


def open_solution(task: Task, folder: Path, prepared: Values) -> Call:
    entry = getattr(importing.module(folder / SUBMISSION, (ENTRY,)), ENTRY)
    return lambda arguments: entry(arguments[_DATA])


def open_reference(task: Task, folder: Path, prepared: Values) -> Call:
    kernel = importing.module(folder / REFERENCE, (_KERNEL,)).ref_kernel
    return lambda arguments: kernel(arguments[_DATA])
