"""kernelexp capture: launches of any program on this machine's GPU, kept with their memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import print_document, print_json
from kernelexp.cli.modes import BEHIND, PartedCommand
from kernelexp.cli.options import JsonOption
from kernelexp.cli.parameters import parse_ranges
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.services.capturing import WantedKernel

_NUMBERED = re.compile(r"(?<!:):([0-9]+)$")


@app.command(cls=PartedCommand)
def capture(
    context: typer.Context,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="NAME[:N]",
            help="Keep the N-th launch of a kernel, the first by default: its own name, its "
            "symbol, or a pattern: '*gemm*'. Repeatable.",
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option("--count", metavar="N", min=1, help="With --kernel: as many, from there on."),
    ] = 1,
    launches: Annotated[
        str,
        typer.Option("--launches", metavar="RANGE", help="Among all of a process: 3, 1-3, 5-."),
    ] = "",
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="MIB", min=1, help="Copy this much of an allocation."),
    ] = 256,
    output_: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="Where captures are kept.")
    ] = Path("captures"),
    json: JsonOption = False,
) -> None:
    """Keep launches of a program that runs on the GPU: code, arguments, memory.

    Without --kernel and --launches, nothing is kept: its kernels are listed.

    For example:
        kernelexp capture -- python3 train.py
        kernelexp capture --kernel '*softmax*:3' -- python3 train.py
    """
    from kernelexp.report import captured as report
    from kernelexp.services import capturing

    argv = tuple(context.meta[BEHIND])
    if not argv:
        raise UsageError("put -- before the program: kernelexp capture -- python3 train.py.")
    order = capturing.CaptureOrder(
        argv=argv,
        kernels=tuple(_wanted(text, count) for text in kernel or ()),
        launches=parse_ranges(launches),
        limit_mib=limit,
        output=output_,
    )
    # With --json, standard output is one document: the program's own goes to standard error.
    result = capturing.capture(order, Path.cwd(), sys.stderr.fileno() if json else None)
    if json:
        print_json("capture", result)
    else:
        print_document(report.render(result, bool(kernel or launches)), stderr=True)
    raise typer.Exit(result.returncode if result.returncode >= 0 else 128 - result.returncode)


def _wanted(text: str, count: int) -> WantedKernel:
    from kernelexp.services.capturing import WantedKernel

    match = _NUMBERED.search(text)
    pattern, first = (text[: match.start()], int(match[1])) if match else (text, 1)
    if not pattern.strip() or first == 0:
        raise UsageError(f"--kernel {text!r} should be like NAME, or NAME:3 for its third launch.")
    return WantedKernel(pattern=pattern, first=first, count=count)
