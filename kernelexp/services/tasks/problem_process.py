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
from kernelexp.services.tasks.task import Task
from kernelexp.system.disk import decode

ROUNDS = 2
"""Calls with each set of sizes: other contents, at the same addresses."""
PRELOAD = ("torch",)


def main() -> None:
    """Does a task named on standard input, with a folder of its own and one that the solution reads
    or wrote."""
    stage, *folders = json.loads(sys.stdin.read())
    own, other = map(Path, folders)
    task = decode((own / "task.json").read_bytes(), Task)
    os.chdir(own)
    result: dict[str, Any]
    try:
        without_gpu.install()
        result = {"make": _make, "draw": _draw, "judge": _judge}[stage](task, own, other)
    except KernelexpError as error:
        result = {"fault": str(error)}
    except Exception as error:
        result = {"fault": f"the problem fails: {type(error).__name__}: {error}"}
    (own / f"{stage}.json").write_text(json.dumps(result))
    os._exit(0)


def _make(task: Task, own: Path, given: Path) -> dict[str, Any]:
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
    return {}


def _draw(task: Task, own: Path, given: Path) -> dict[str, Any]:
    """Inputs of one call at the last sizes that are timed."""
    case = (task.timed or task.cases)[-1]
    seed = json.loads((own / "seeds.json").read_text())[0]
    problem = formats.named(task.format).open_problem(task, own)
    wire.write(given / "prepared", problem.preparation())
    wire.write(given / "0-0", problem.arguments(case, seed))
    return {}


def _judge(task: Task, own: Path, answers: Path) -> dict[str, Any]:
    problem = formats.named(task.format).open_problem(task, own)
    cases = []
    for index, case in enumerate(task.cases):
        sentences = [
            _of_round(problem, case, own, answers, f"{index}-{turn}") for turn in range(ROUNDS)
        ]
        cases.append(
            {
                "sentence": next(filter(None, sentences), ""),
                "only_later": not sentences[0] and any(sentences),
            }
        )
    errors = msgspec.to_builtins(getattr(problem, "errors", None))
    return {"cases": cases, "errors": errors}


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
