"""kernelexp replay: a captured launch again, on this machine's GPU or emulated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import output
from kernelexp.cli.options import JsonOption, NvccOption
from kernelexp.model import errors


@app.command()
def replay(
    folders: Annotated[
        list[Path], typer.Argument(metavar="CAPTURE...", help="Folders that capture wrote.")
    ],
    emulated: Annotated[
        bool,
        typer.Option("--emulated", help="On the CPU, as without a GPU: its SASS is executed."),
    ] = False,
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="CAPTURE",
            help="Time it directly after this one, which the program launched before it.",
        ),
    ] = None,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Launch a captured kernel again, and compare what it writes bit by bit.

    On a GPU it is timed as the program's own launches were: in a row, after its memory was put
    back, and with other data in L2. The exit code is 4 where a byte differs.

    For example:
        kernelexp replay captures/softmax-3
        kernelexp replay captures/relu-8 --after captures/gemm-7
        kernelexp replay --emulated captures/*
    """
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
    raise typer.Exit(errors.OK if all(item.same for item in results) else errors.WRONG_RESULT)
