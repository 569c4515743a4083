"""`kernelexp capture --replay`: repeats a captured launch, on the GPU or emulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelexp.cli.console import output
from kernelexp.model import errors


def replay(
    folders: Sequence[Path], after: Path | None, nvcc: str | None, *, emulated: bool, json: bool
) -> int:
    """Prints what came of each; the exit code."""
    from kernelexp.report import captured as report
    from kernelexp.services import replaying
    from kernelexp.system import toolchain

    root = Path.cwd()
    tools = toolchain.find(nvcc, root / ".kernelexp")
    on_gpu = not emulated and replaying.has_gpu()
    if after and not on_gpu:
        raise errors.UsageError(
            "--after times a launch, and needs a GPU: without it, the launch is emulated alone."
        )
    results = [
        replaying.replay(folder, "gpu" if on_gpu else "emulator", tools, root, after)
        for folder in folders
    ]
    output("replay", results, report.render_replays(results), json)
    return errors.OK if all(item.same for item in results) else errors.WRONG_RESULT
