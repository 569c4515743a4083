"""kernelexp exec: a CUDA program as it is, run without a GPU and checked."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from typer.core import TyperGroup

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_ranges
from kernelexp.cli.console import print_document, print_json
from kernelexp.cli.modes import BEHIND, PartedCommand
from kernelexp.cli.options import argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.services.execution import ExecRequest, Executed

_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c")


@app.command("exec", cls=PartedCommand)
def exec_(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None,
        argument(
            "[SOURCE]... [-- PROGRAM|ARGS]...",
            "Sources to compile, then -- and the program's arguments; or -- and a program linked "
            "with the shared runtime (nvcc -cudart shared).",
        ),
    ] = None,
    device: Annotated[
        str, option("--device CARD", "The card that the program sees: H200, B200, L4, small.")
    ] = "H200",
    flags: Annotated[str, option("--flags FLAGS", "Flags of nvcc, as in '-O3 -DN=64'.")] = "",
    make: Annotated[str, option("--make COMMAND", "Build the program with this first.")] = "",
    kernel: Annotated[
        list[str] | None,
        option(
            "--kernel NAME",
            "Check only kernels with this in their names; others are executed unchecked, which "
            "is several times as fast.",
        ),
    ] = None,
    launches: Annotated[str, option("--launches RANGE", "Check only these: 3, 1-3, 5-.")] = "",
    per_kernel: Annotated[
        int,
        option("--per-kernel N", "Check only the first N launches of each kernel; 0: all.", min=0),
    ] = 0,
    limit: Annotated[
        int, option("--limit N", "Warp instructions after which a launch is ended.", min=1)
    ] = 2_000_000_000,
    unwritten: Annotated[
        int,
        option(
            "--unwritten BYTE",
            "What device memory reads as before it is written: 0, as fresh memory of a card "
            "mostly does.",
            min=0,
            max=255,
        ),
    ] = 255,
    destroy_on_device_error: Annotated[
        Literal["context", "kernel"],
        option(
            "--destroy-on-device-error",
            "What a bad access ends: all that follows, as on a card, or its launch alone.",
        ),
    ] = "context",
    schedules: Annotated[
        int,
        option(
            "--schedules N",
            "Run the program N times, with its warps in another order each time.",
            min=1,
            max=1000,
        ),
    ] = 1,
    junit: options.Junit = None,
    sarif: Annotated[Path | None, option("--sarif FILE", "Write SARIF too.")] = None,
    verbose: Annotated[
        bool, option("--verbose -v", "Show notes and a table of kernels too.")
    ] = False,
    json: options.Json = False,
    nvcc: options.Nvcc = None,
) -> None:
    """Run a CUDA program on this machine's CPU, and check its kernels and its calls.

    The program's output and its exit code are its own; findings go to standard error. If the
    program itself succeeds, findings turn the exit code into 4.

    For example:
        kernelexp exec main.cu util.cu -- 1024 100
        kernelexp exec --make 'make ARCH=sm_90a' -- ./main 1024
    """
    from kernelexp.services import execution
    from kernelexp.system import toolchain

    for path in (junit, sarif):
        if path:
            common.require_folder(path)
    result = _request(context)
    root = Path.cwd()
    tools = toolchain.find(nvcc, root / ".kernelexp")
    # With --json, standard output is one document: the program's own goes to standard error.
    executed = execution.execute(result, tools, root, output=sys.stderr.fileno() if json else None)
    execution.require_checked(result, executed)
    _show(executed, junit, sarif, verbose, json)
    raise typer.Exit(execution.exit_code(executed))


def parse(text: str) -> ExecRequest:
    """Parses the text after `kernelexp exec`; UsageError where it is invalid."""
    from typer.main import get_command

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--from-program {text!r}: {error}.") from None
    command = cast(TyperGroup, get_command(app)).commands["exec"]
    return _request(command.make_context("exec", words))


def _request(context: Any) -> ExecRequest:
    from kernelexp.services import execution

    given, argv = context.params, context.meta[BEHIND]
    sources = [Path(source) for source in given["sources"] or []]
    _check_sources(sources)
    if not sources and not argv:
        raise UsageError("name sources to compile, or put -- before a program to run.")
    return execution.ExecRequest(
        sources=tuple(sources),
        flags=tuple(shlex.split(given["flags"])),
        argv=tuple(argv),
        make=given["make"],
        device=given["device"],
        kernels=tuple(given["kernel"] or ()),
        launches=parse_ranges(given["launches"]),
        per_kernel=given["per_kernel"],
        unwritten=given["unwritten"],
        destroys=given["destroy_on_device_error"],
        limit=given["limit"],
        schedules=given["schedules"],
    )


def _show(
    executed: Executed, junit: Path | None, sarif: Path | None, verbose: bool, json: bool
) -> None:
    import msgspec

    from kernelexp.report import programs as report

    if json:
        print_json("exec", executed)
    else:
        print_document(report.render(executed, verbose), stderr=True)
    if junit:
        common.write_report(junit, report.to_junit(executed).encode())
    if sarif:
        content = msgspec.json.format(msgspec.json.encode(report.to_sarif(executed)), indent=2)
        common.write_report(sarif, content)


def _check_sources(sources: list[Path]) -> None:
    for source in sources:
        if source.suffix not in _SUFFIXES:
            raise UsageError(
                f"{str(source)!r} is not a source ({', '.join(_SUFFIXES)}): put -- before a "
                "built program and before a program's arguments."
            )
        if not os.path.exists(source):
            raise UsageError(f"there is no file {source}.")
