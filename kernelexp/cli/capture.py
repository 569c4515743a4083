"""kernelexp capture: launches of any program on this machine's GPU, kept, and launched again."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_ranges
from kernelexp.cli.console import output, print_document, print_json
from kernelexp.cli.modes import BEHIND, PartedCommand, refuse_other_modes
from kernelexp.cli.options import argument, option
from kernelexp.model import errors
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.services.capturing import WantedKernel

WITH_REPLAY = "With --replay"
WITHOUT_REPLAY = "Without --replay"
_NUMBERED = re.compile(r"(?<!:):([0-9]+)$")


@app.command(cls=PartedCommand)
def capture(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        argument(
            "[CAPTURE]... [-- PROGRAM]...",
            "-- and the program; with --replay, folders that were kept.",
        ),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        option(
            "--kernel NAME[:N]",
            "Keep the N-th launch of a kernel, the first by default: its own name, its symbol, "
            "or a pattern: '*gemm*'. Repeatable.",
            WITHOUT_REPLAY,
        ),
    ] = None,
    count: Annotated[
        int, option("--count N", "With --kernel: as many, from there on.", WITHOUT_REPLAY, min=1)
    ] = 1,
    launches: Annotated[
        str, option("--launches RANGE", "Among all of a process: 3, 1-3, 5-.", WITHOUT_REPLAY)
    ] = "",
    limit: Annotated[
        int, option("--limit MIB", "Copy this much of an allocation.", WITHOUT_REPLAY, min=1)
    ] = 256,
    output_: Annotated[
        Path, option("--output FOLDER", "Where captures are kept.", WITHOUT_REPLAY)
    ] = Path("captures"),
    replay: Annotated[
        bool,
        option("--replay", "Launch captured kernels again instead, and compare what they write."),
    ] = False,
    emulated: Annotated[
        bool,
        option("--emulated", "On the CPU, as without a GPU: its SASS is executed.", WITH_REPLAY),
    ] = False,
    after: Annotated[
        Path | None,
        option(
            "--after CAPTURE",
            "Time it directly after this one, which the program launched before it.",
            WITH_REPLAY,
        ),
    ] = None,
    nvcc: options.Nvcc = None,
    json: options.Json = False,
) -> None:
    """Keep launches of a program that runs on the GPU, or launch them again.

    Code, arguments and memory are kept. Without --kernel and --launches, nothing is kept: the
    program's kernels are listed.

    With --replay, what a captured kernel writes is compared bit by bit. On a GPU it is timed as the
    program's own launches were: in a row, after its memory was put back, and with other data in L2.
    The exit code is 4 where a byte differs.

    For example:
        kernelexp capture -- python3 train.py
        kernelexp capture --kernel '*softmax*:3' -- python3 train.py
        kernelexp capture --replay captures/softmax-3
        kernelexp capture --replay captures/relu-8 --after captures/gemm-7
    """
    program = tuple(context.meta[BEHIND])
    if replay:
        refuse_other_modes(context, WITH_REPLAY)
        if program or not folders:
            raise UsageError("--replay: name folders that kernelexp capture wrote.")
        raise typer.Exit(_replay(folders, after, nvcc, emulated=emulated, json=json))
    refuse_other_modes(context, WITHOUT_REPLAY)
    if nvcc is not None:
        raise UsageError("--nvcc goes with --replay; see kernelexp capture --help.")
    if folders or not program:
        raise UsageError("put -- before the program: kernelexp capture -- python3 train.py.")
    from kernelexp.report import captured as report
    from kernelexp.services import capturing

    order = capturing.CaptureOrder(
        argv=program,
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


def _replay(
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
        raise UsageError(
            "--after times a launch, and needs a GPU: without it, the launch is emulated alone."
        )
    results = [
        replaying.replay(folder, "gpu" if on_gpu else "emulator", tools, root, after)
        for folder in folders
    ]
    output("replay", results, report.render_replays(results), json)
    return errors.OK if all(item.same for item in results) else errors.WRONG_RESULT


def _wanted(text: str, count: int) -> WantedKernel:
    from kernelexp.services.capturing import WantedKernel

    match = _NUMBERED.search(text)
    pattern, first = (text[: match.start()], int(match[1])) if match else (text, 1)
    if not pattern.strip() or first == 0:
        raise UsageError(f"--kernel {text!r} should be like NAME, or NAME:3 for its third launch.")
    return WantedKernel(pattern=pattern, first=first, count=count)
