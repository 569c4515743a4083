"""A measuring process seen from outside: how it is started, and what it answered."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from kernelexp.evidence.measure.job import Answer, RefusedJob
from kernelexp.evidence.measure.worker import ANSWERS
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.system.disk import decode
from kernelexp.system.process import processes

# The net under the worker's own limits; it waits for its turn in this time too.
WORKER_LIMIT_S = 1800.0


def worker_argv(folder: Path) -> list[str]:
    """The command line of the worker whose job is in a folder."""
    return [sys.executable, "-m", "kernelexp.evidence.measure.worker", str(folder)]


def worker_environment(uuid: str) -> dict[str, str]:
    """Returns a worker's environment: nothing but its own GPU in sight, and this package."""
    package_root = str(Path(__file__).parents[3])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"CUDA_VISIBLE_DEVICES": uuid, "PYTHONPATH": os.pathsep.join(paths)}


def run_worker(argv: list[str], uuid: str) -> processes.Completed:
    """Runs a worker, or a tool that starts it, to its end."""
    try:
        return processes.run(argv, env=worker_environment(uuid), timeout_s=WORKER_LIMIT_S)
    except TimeoutError:
        raise EnvironmentFault(
            f"a measuring process had not ended after {WORKER_LIMIT_S:g} s: its GPU may hang."
        ) from None


def read_answers(folder: Path) -> list[Answer]:
    """Reads what the worker of a folder has answered so far."""
    try:
        lines = (folder / ANSWERS).read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    whole = [line for line in lines if line.endswith(b"\n")]
    try:
        return [decode(line, Answer) for line in whole]
    except msgspec.DecodeError as error:
        raise EnvironmentFault(
            f"a measuring process gave an answer that can't be read ({error}): something "
            f"else wrote to {folder / ANSWERS}."
        ) from None


def as_error(refused: RefusedJob) -> EnvironmentFault | ConfigurationError:
    if refused.environment:
        return EnvironmentFault(refused.sentence)
    return ConfigurationError(refused.sentence)
