"""Problems and solutions as other projects write them.

A new format is a module here, with the functions of `task.TaskFormat`, and an entry of FORMATS.
"""

from __future__ import annotations

from pathlib import Path

from kernelexp.model.errors import UsageError
from kernelexp.services.tasks.formats import flashinfer, gpumode, kernelbench, leetgpu
from kernelexp.services.tasks.task import TaskFormat

FORMATS: tuple[TaskFormat, ...] = (gpumode, leetgpu, kernelbench, flashinfer)
"""In the order that they are asked whether a path is theirs."""


def named(name: str) -> TaskFormat:
    return next(task_format for task_format in FORMATS if task_format.NAME == name)


def recognise(path: Path) -> TaskFormat:
    """UsageError where it is a problem of none of them."""
    if not path.exists():
        raise UsageError(f"there is no problem at {path}.")
    for task_format in FORMATS:
        if task_format.recognises(path):
            return task_format
    names = ", ".join(item.NAME for item in FORMATS)
    raise UsageError(f"{path} is a problem of no format that kernelexp reads ({names}).")
