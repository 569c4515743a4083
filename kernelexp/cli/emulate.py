"""kernelexp emulate: variants executed on the CPU."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits, parse_variants
from kernelexp.cli.console import output, progress_bars
from kernelexp.cli.options import (
    HERE,
    JsonOption,
    LimitOption,
    NvccOption,
    ProjectOption,
    SetOption,
    VariantsArgument,
    VerboseOption,
)
from kernelexp.errors import UsageError


@app.command()
def emulate(
    variants: VariantsArgument = None,
    set_: SetOption = None,
    size: Annotated[
        str,
        typer.Option("--size", metavar="NAME", help="Which size of problem.py to execute."),
    ] = "emulated",
    full: Annotated[
        bool,
        typer.Option("--full", help="Extrapolate counters to the full problem from two sizes."),
    ] = False,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Execute variants on the CPU: result, barriers, counters.

    For example: kernelexp emulate patch_embed_gemm@sm_100a --set store=direct_v8 --full
    """
    from kernelexp import emulations
    from kernelexp.report import emulations as report

    loaded = common.load(project)
    if not variants:
        raise UsageError("name the variants to emulate (kernelexp list shows kernels and axes).")
    wanted = parse_variants(loaded, variants, set_)
    tools = common.tools(loaded, nvcc)
    with progress_bars() as bars:
        found, faults = emulations.emulate(
            loaded, wanted, tools, size, full, parse_limits(limit), bars
        )
    for fault in faults:
        typer.echo(f"error: {fault}", err=True)
    output(found, report.render(found, verbose), json)
    raise typer.Exit(emulations.exit_code([each.arm for each in found], faults))
