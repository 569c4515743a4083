"""kernelexp evaluate: one source text against a kernel's problem."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_seconds
from kernelexp.cli.console import output
from kernelexp.cli.options import (
    HERE,
    DeviceOption,
    EmulateOption,
    GpuOption,
    JsonOption,
    LimitOption,
    MarginOption,
    NvccOption,
    ProjectOption,
    VariantArgument,
    VerboseOption,
)


@app.command()
def evaluate(
    variant: VariantArgument,
    source: Annotated[
        str,
        typer.Option(
            "--source", metavar="FILE", help="The source to evaluate; - for standard input."
        ),
    ],
    hostile: Annotated[
        bool,
        typer.Option(
            "--hostile",
            help="Do not trust the source: compilers read nothing outside of the project, and "
            "memory, time and files are limited.",
        ),
    ] = False,
    emulate: EmulateOption = True,
    gpu: GpuOption = True,
    device: DeviceOption = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="TIME", help="Time limit for measuring, 30s by default."),
    ] = None,
    margin: MarginOption = 1.0,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Evaluate a source instead of a variant's own.

    It is built with the variant's axes, checked against the kernel's problem.py, and timed next to
    the project's own source. Nothing is recorded.

    For example:
        kernelexp evaluate transpose@sm_90a:rows=4 --source mine.cu --json
    """
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.project import parse_variant
    from kernelexp.report.runs import page
    from kernelexp.services import evaluation
    from kernelexp.services.run.runs import RunSettings

    loaded = common.load(project)
    wanted = parse_variant(loaded, variant)
    seconds = parse_seconds(budget, "--budget") if budget else None
    settings = RunSettings(
        measuring=Measuring(margin=margin / 100, budget_s=seconds) if gpu else None
    )
    text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    with common.session(loaded, nvcc, limit, emulate=emulate, device=device) as session:
        found = evaluation.evaluate(loaded, wanted, text, session, settings, hostile=hostile)
    output("evaluate", found, page.render(found.record, verbose=verbose), json)
    raise typer.Exit(evaluation.exit_code(found))
