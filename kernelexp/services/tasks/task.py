"""A problem of another project with somebody's solution, and what a format has to offer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

Values = dict[str, Any]
"""Arguments of a call by name, in their order: tensors, numbers, texts, lists and mappings."""
Language = Literal["python", "cuda"]


class TaskCase(msgspec.Struct, frozen=True, kw_only=True):
    """One set of sizes that a problem names."""

    name: str
    weight: float = 1.0
    parameters: dict[str, Any] = {}
    """As the format has them."""
    reduced: dict[str, tuple[int, int]] = {}
    """Sizes that are smaller than the problem's: its own, then the one that is used."""


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate as text."""

    name: str
    files: dict[str, str]
    main: str
    """The file that is imported, or compiled."""
    entry: str
    """What it has to define."""
    language: Language = "python"
    refused: str = ""
    """Why it can't be executed here, in a sentence."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A problem with a solution, as text: reading it has executed nothing."""

    format: str
    name: str
    files: dict[str, str]
    """Of the problem."""
    cases: tuple[TaskCase, ...]
    timed: tuple[TaskCase, ...] = ()
    """Those that times are taken of; none: the cases."""
    solution: Solution
    options: dict[str, Any] = {}
    """Of the format's own."""
    not_checked: tuple[str, ...] = ()
    """Of what the problem has, in sentences."""


class SolutionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a solution's process says of its end: it explains a failure, and is believed nowhere
    else."""

    error: Literal["", "build", "raised"] = ""
    sentence: str = ""
    lines: tuple[tuple[str, int], ...] = ()
    """Files of the solution and their lines, the innermost last."""


class TaskProblem(Protocol):
    """A problem that was opened, in the process that keeps its reference."""

    def arguments(self, case: TaskCase, seed: int) -> Values:
        """Inputs that depend on the seed."""

    def expected(self, case: TaskCase, arguments: Values) -> Any:
        """Returns the reference's answer to the arguments, which may be changed."""

    def compare(self, case: TaskCase, arguments: Values, expected: Any, actual: Any) -> str:
        """Says what is wrong with a solution's answer, in a sentence; empty: nothing."""

    def preparation(self) -> Values:
        """Returns what a solution is told before its first call."""


Call = Callable[[Values], Any]
"""A solution that was opened, in its own process."""


class TaskFormat(Protocol):
    """The interface of a module of this package for its format."""

    NAME: str

    def recognises(self, path: Path) -> bool:
        """Whether a file or a folder is a problem of this format."""

    def read(self, path: Path, solution: Path, largest: int) -> Task:
        """Reads both, executing neither. No size is to be larger than `largest` (0: as they are)
        where a problem's own sizes would take the emulator too long."""

    def open_problem(self, task: Task, folder: Path) -> TaskProblem:
        """Opens the problem in its own process; its files lie in the folder."""

    def open_solution(self, task: Task, folder: Path, prepared: Values) -> Call:
        """Opens the solution in its own process; its files lie in the folder."""

    def open_reference(self, task: Task, folder: Path, prepared: Values) -> Call:
        """Opens what a solution is timed against, in a process of its own."""


def shrink(value: int, largest: int) -> int:
    """A size that is at most `largest`, and odd where the size is: tails stay tails."""
    if not largest or value <= largest:
        return value
    return largest - 1 if value % 2 else largest


def shrink_all(values: dict[str, Any], largest: int) -> TaskCase:
    """A case of these parameters, whose name spells them."""
    smaller = {
        name: shrink(value, largest)
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
    reduced = {
        name: (values[name], value) for name, value in smaller.items() if value != values[name]
    }
    parameters = {**values, **smaller}
    return TaskCase(name=spell(parameters), parameters=parameters, reduced=reduced)


def spell(parameters: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())
