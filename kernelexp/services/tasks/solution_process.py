"""The process that has a solution: inputs come in, answers go out; no reference, no clock, no
verdict. What it says of itself explains failures, and is believed nowhere else."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import BuildError, KernelexpError
from kernelexp.services.tasks import extensions, formats, wire, without_gpu
from kernelexp.services.tasks.task import Call, SolutionReport, Task
from kernelexp.system.disk import decode

ROUNDS = 2
REPORT = "told.json"


def main() -> None:
    """`build`, `run` or `launch`, the folders with inputs and for answers, and torch's memory."""
    stage, given, answers = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    task = decode((given / "task.json").read_bytes(), Task)
    os.chdir(given)
    try:
        if stage == "build" and task.solution.language == "cuda":
            extensions.compile_shared(given / task.solution.main)
            return _tell(answers, SolutionReport())
        _prepare(Path(sys.argv[4]))
        call = formats.named(task.format).open_solution(task, given, wire.read(given / "prepared"))
        if stage == "run":
            _answer(call, len(task.cases), given, answers)
        elif stage == "launch":
            call(dict(wire.read(given / "0-0")))
            extensions.runtime().cudaDeviceSynchronize()
        report = SolutionReport()
    except BaseException as error:
        report = explained(error)
    _tell(answers, report)


def _tell(answers: Path, report: SolutionReport) -> None:
    """The last thing that it does: no destructor of the solution's runs behind it."""
    (answers / REPORT).write_bytes(msgspec.json.encode(report))
    os._exit(1 if report.error else 0)


def _prepare(allocator: Path) -> None:
    # Before torch, which may come with NVIDIA's runtime: the first one of that name is everybody's.
    extensions.runtime()
    import torch
    from torch.utils import cpp_extension

    without_gpu.manage_memory(allocator)
    torch.set_num_threads(1)
    without_gpu.install(extensions.runtime().cudaDeviceSynchronize)
    cpp_extension.load_inline = extensions.load_inline
    cpp_extension.load = extensions.load


def _answer(call: Call, cases: int, given: Path, answers: Path) -> None:
    for index in range(cases):
        arguments: Any = None
        for turn in range(ROUNDS):
            name = f"{index}-{turn}"
            arguments = refreshed(arguments, wire.read(given / name))
            answer = call(dict(arguments))
            extensions.runtime().cudaDeviceSynchronize()
            wire.write(answers / name, answer)


def refreshed(old: Any, new: Any) -> Any:
    """The new contents at the old addresses, as far as the shapes are the same."""
    import torch

    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
        same = old.shape == new.shape and old.dtype == new.dtype
        return old.copy_(new) if same and not old.requires_grad else new
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return {name: refreshed(old[name], value) for name, value in new.items()}
    if isinstance(old, list | tuple) and type(old) is type(new) and len(old) == len(new):
        return type(new)(refreshed(one, other) for one, other in zip(old, new, strict=True))
    return new


def explained(error: BaseException) -> SolutionReport:
    if isinstance(error, BuildError):
        return SolutionReport(error="build", sentence=str(error))
    sentence = (
        str(error) if isinstance(error, KernelexpError) else f"{type(error).__name__}: {error}"
    )
    frames = traceback.extract_tb(error.__traceback__)
    here = os.getcwd()
    lines = [(Path(f.filename).name, f.lineno or 0) for f in frames if f.filename.startswith(here)]
    return SolutionReport(error="raised", sentence=sentence, lines=tuple(lines[-3:]))


if __name__ == "__main__":
    main()
