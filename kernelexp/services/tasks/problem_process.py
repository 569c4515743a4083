"""The process that has a problem's reference: it makes inputs, keeps answers, and compares."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.decoding import decode
from kernelexp.model.errors import KernelexpError
from kernelexp.services.tasks import floor, formats, wire, without_gpu
from kernelexp.services.tasks.task import Task, TaskCase

CHECKED = 6
"""Sets whose answers are compared, if the solution gets to see them."""
ROUNDS = 2
"""Calls with each set of sizes: other contents, at the same addresses."""


PRELOAD = ("torch",)


class TimedOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be timed."""

    device: str
    case: int
    seeds: list[int] = []
    """Of one set of inputs each."""
    fewest: int = 0
    bytes: int = 0
    """That all sets may have, unless the fewest have more."""
    checked: list[int] = []
    """Sets whose answers are compared; how many, where they are drawn."""


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """What lies ready."""

    sets: int
    checked: list[int]
    """By chance, and known to no arm."""
    needed: floor.Moved


def main() -> None:
    """On standard input: what is to be done, a folder of its own, one that the solution reads or
    wrote, and for what is timed a TimedOrder."""
    what, *folders, order = json.loads(sys.stdin.read())
    own, other = map(Path, folders)
    task = decode((own / "task.json").read_bytes(), Task)
    os.chdir(own)
    result: dict[str, Any]
    try:
        if order:
            result = _STEPS[what](task, own, other, msgspec.convert(order, TimedOrder))
        else:
            without_gpu.install()
            result = (_make if what == "make" else _judge)(task, own, other)
    except KernelexpError as error:
        result = {"fault": str(error)}
    except Exception as error:
        result = {"fault": f"the problem fails: {type(error).__name__}: {error}"}
    (own / f"{what}.json").write_text(json.dumps(result))
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
    arguments, expected = (wire.read(own / f"{name}-{what}") for what in ("arguments", "expected"))
    return str(problem.compare(case, arguments, expected, actual))


# What is timed: at the problem's own sizes, on the device


def _start(task: Task, own: Path, order: TimedOrder) -> tuple[Any, TaskCase]:
    import torch

    if order.device == "cuda":
        torch.set_default_device("cuda")
        torch.backends.cudnn.allow_tf32 = False
    case = (task.timed or task.cases)[order.case]
    return formats.named(task.format).open_problem(task, own), case


def _draw(task: Task, own: Path, given: Path, order: TimedOrder) -> dict[str, Any]:
    """Sets of inputs, answers to some, an answer in zeros, and the bytes that have to be moved."""
    import torch

    problem, case = _start(task, own, order)
    prepared = problem.preparation()
    for folder in (own, given):
        wire.write(folder / "prepared", prepared)
    arguments = problem.arguments(case, order.seeds[0])
    size = sum(tensor.nbytes for tensor in wire.tensors(arguments))
    count = min(len(order.seeds), max(order.fewest, order.bytes // max(1, size)))
    checked = sorted(random.SystemRandom().sample(range(count), CHECKED))
    for place, seed in enumerate(order.seeds[:count]):
        arguments = problem.arguments(case, seed)
        wire.write(own / f"set-{place}", arguments)
        if place in checked:
            wire.write(own / f"set-{place}-expected", problem.expected(case, arguments))
    reference = formats.named(task.format).open_reference(task, own, prepared)
    arguments = problem.arguments(case, order.seeds[0])
    with torch.no_grad():
        answer = reference(wire.copied(arguments))
    for tensor in wire.tensors(answer):
        tensor.zero_()
    wire.write(own / "like", answer)
    needed = floor.moved(reference, arguments, order.seeds[0])
    drawn = Drawn(sets=count, checked=checked, needed=needed)
    return dict(msgspec.to_builtins(drawn))


def _check(task: Task, own: Path, answers: Path, order: TimedOrder) -> dict[str, Any]:
    problem, case = _start(task, own, order)
    sentences, digests = {}, {}
    for place in order.checked:
        try:
            actual = wire.read(answers / f"set-{place}", order.device)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            sentences[place] = f"the solution's answer can't be read: {error}."
            continue
        arguments, expected = (
            wire.read(own / f"set-{place}{what}", order.device) for what in ("", "-expected")
        )
        digests[place] = wire.digest(actual)
        sentences[place] = str(problem.compare(case, arguments, expected, actual))
    return {"sentences": sentences, "digests": digests}


_STEPS = {"draw": _draw, "check": _check}


if __name__ == "__main__":
    main()
