"""An assessment as Traces of FlashInfer, which its own programs read."""

from __future__ import annotations

import datetime
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelexp.model.arm import Status
from kernelexp.model.errors import UsageError
from kernelexp.services.tasks import formats
from kernelexp.services.tasks.assessment import Assessment, CaseAnswer, CaseTime
from kernelexp.services.tasks.formats import flashinfer
from kernelexp.system import disk

_STATUS = {
    Status.BUILD_FAILED: "COMPILE_ERROR",
    Status.CRASHED: "RUNTIME_ERROR",
    Status.TIMED_OUT: "TIMEOUT",
    Status.INVALID: "RUNTIME_ERROR",
}


def write(path: Path, problem: Path, solution: Path, assessed: Assessment) -> None:
    """A Trace in each line; UsageError for a problem of another format."""
    if assessed.format != flashinfer.NAME:
        raise UsageError(f"--trace is for problems of FlashInfer; this one is {assessed.format}'s.")
    task = formats.named(assessed.format).read(problem, solution, 0)
    answers = {case.name: case for case in assessed.cases}
    lines = []
    for case in task.cases:
        trace: dict[str, Any] = {
            "definition": task.name,
            "workload": case.parameters["own"],
            "solution": assessed.solution,
        }
        timed = next((time for time in assessed.times if time.name == case.name), None)
        evaluation = (
            _passed(assessed, timed) if timed else _evaluation(assessed, answers.get(case.name))
        )
        lines.append(json.dumps({**trace, **({"evaluation": evaluation} if evaluation else {})}))
    disk.write(path.resolve(), ("\n".join(lines) + "\n").encode(), durable=False)


def _passed(assessed: Assessment, time: CaseTime) -> dict[str, Any]:
    return {
        **_described(assessed, "PASSED", assessed.device),
        "correctness": _errors(assessed),
        "performance": {
            "latency_ms": time.time_us / 1000,
            "reference_latency_ms": time.reference_us / 1000,
            "speedup_factor": 1 / time.ratio,
        },
    }


def _errors(assessed: Assessment) -> dict[str, float]:
    return {
        "max_relative_error": assessed.largest_relative_error or 0.0,
        "max_absolute_error": assessed.largest_absolute_error or 0.0,
    }


def _evaluation(assessed: Assessment, answer: CaseAnswer | None) -> dict[str, Any] | None:
    """Describes a failure; None if right: a Trace that says PASSED has a time; nothing was
    timed."""
    status = _STATUS.get(assessed.status)
    result: dict[str, Any] = {}
    if answer is not None and not answer.right:
        status = _of_sentence(answer.sentence)
        if status == "INCORRECT_NUMERICAL":
            result["correctness"] = _errors(assessed)
    elif answer is not None:
        return None
    if status is None:
        return None
    return {**_described(assessed, status, f"emulated on {platform.machine()}"), **result}


def _described(assessed: Assessment, status: str, hardware: str) -> dict[str, Any]:
    libraries = {"torch": version("torch"), "kernelexp": version("kernelexp")}
    return {
        "status": status,
        "environment": {"hardware": hardware, "libs": libraries},
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "log": assessed.sentence,
    }


def _of_sentence(sentence: str) -> str:
    if " has shape " in sentence:
        return "INCORRECT_SHAPE"
    return "INCORRECT_DTYPE" if " has type " in sentence else "INCORRECT_NUMERICAL"
