"""The process that has a problem's reference: it makes inputs, keeps answers, and compares."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import KernelexpError
from kernelexp.services.tasks import formats, wire, without_gpu
from kernelexp.services.tasks.formats.compare import Errors
from kernelexp.services.tasks.task import Task
from kernelexp.system.disk import decode

ROUNDS = 2
"""Calls with each set of sizes: other contents, at the same addresses."""
PRELOAD = ("torch",)


class JudgedCase(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to one set of sizes."""

    sentence: str
    """What is wrong; empty: nothing."""
    only_later: bool
    """Whether the first call is right, and a later one is not."""


class ProblemReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a stage."""

    fault: str = ""
    """Why there is no result, in a sentence."""
    cases: tuple[JudgedCase, ...] = ()
    errors: Errors | None = None


def main() -> None:
    """Does a task named on standard input, with a folder of its own and one that the solution reads
    or wrote."""
    stage, *folders = json.loads(sys.stdin.read())
    own, other = map(Path, folders)
    task = decode((own / "task.json").read_bytes(), Task)
    os.chdir(own)
    try:
        without_gpu.install()
        result = {"make": _make, "draw": _draw, "judge": _judge}[stage](task, own, other)
    except KernelexpError as error:
        result = ProblemReport(fault=str(error))
    except Exception as error:
        result = ProblemReport(fault=f"the problem fails: {type(error).__name__}: {error}")
    # Not JSON, which has no infinite error.
    (own / f"{stage}.msgpack").write_bytes(msgspec.msgpack.encode(result))
    os._exit(0)


def _make(task: Task, own: Path, given: Path) -> ProblemReport:
    seeds = json.loads((own / "seeds.json").read_text())
    problem = formats.named(task.format).open_problem(task, own)
    wire.write(given / "prepared", problem.preparation())
    for index, case in enumerate(task.cases):
        for turn in range(ROUNDS):
            name = f"{index}-{turn}"
            arguments = problem.arguments(case, seeds[index * ROUNDS + turn])
            wire.write(given / name, arguments)
            wire.write(own / f"{name}-arguments", arguments)
            wire.write(own / f"{name}-expected", problem.expected(case, arguments))
    return ProblemReport()


def _draw(task: Task, own: Path, given: Path) -> ProblemReport:
    """Inputs of one call at the last sizes that are timed."""
    case = (task.timed or task.cases)[-1]
    seed = json.loads((own / "seeds.json").read_text())[0]
    problem = formats.named(task.format).open_problem(task, own)
    wire.write(given / "prepared", problem.preparation())
    wire.write(given / "0-0", problem.arguments(case, seed))
    return ProblemReport()


def _judge(task: Task, own: Path, answers: Path) -> ProblemReport:
    problem = formats.named(task.format).open_problem(task, own)
    cases = []
    for index, case in enumerate(task.cases):
        sentences = [
            _of_round(problem, case, own, answers, f"{index}-{turn}") for turn in range(ROUNDS)
        ]
        sentence, only_later = next(filter(None, sentences), ""), not sentences[0]
        cases.append(JudgedCase(sentence=sentence, only_later=only_later and bool(sentence)))
    return ProblemReport(cases=tuple(cases), errors=getattr(problem, "errors", None))


def _of_round(problem: Any, case: Any, own: Path, answers: Path, name: str) -> str:
    try:
        actual = wire.read(answers / name)
    except FileNotFoundError:
        return "the solution gave no answer."
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        return f"the solution's answer can't be read: {error}."
    arguments, expected = (wire.read(own / f"{name}-{part}") for part in ("arguments", "expected"))
    return str(problem.compare(case, arguments, expected, actual))


if __name__ == "__main__":
    main()
