"""kernelexp history: one variant at each commit of a range."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits
from kernelexp.cli.completion import complete, variant_names
from kernelexp.cli.console import output, print_text, progress_bars
from kernelexp.cli.options import (
    HERE,
    DeviceOption,
    JsonOption,
    LimitOption,
    MarginOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
)
from kernelexp.errors import UsageError


@app.command()
def history(
    variant: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            autocompletion=complete(variant_names),
            help="Its candidate (F3:2 of several, F3:baseline), or KERNEL@ARCH:axis=value,...",
        ),
    ],
    revisions: Annotated[
        str,
        typer.Option(
            "--revisions", metavar="A..B", help="The commits after A up to B, along first parents."
        ),
    ],
    emulate: Annotated[
        bool, typer.Option("--emulate/--no-emulate", help="Execute the PTX on the CPU.")
    ] = False,
    gpu: Annotated[
        bool, typer.Option("--gpu/--no-gpu", help="Time what this machine's GPU can run.")
    ] = True,
    margin: MarginOption = 1.0,
    device: DeviceOption = None,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Build a variant at each commit of a range, and time what differs together.

    A itself is the baseline. Commits with the same SASS and launch share a time.

    For example:
        kernelexp history F3 --revisions HEAD~10..HEAD
    """
    from kernelexp import timeline
    from kernelexp.evidence.measured import Measuring
    from kernelexp.project import parse_arm
    from kernelexp.report import markdown as rendering
    from kernelexp.report import revisions as report

    if json and markdown:
        raise UsageError("--json and --markdown do not go together: give one of them.")
    loaded = common.load(project)
    wanted, _, _ = parse_arm(loaded, variant)
    with common.executor(device, None, None) as executor, progress_bars(loaded.root) as bars:
        asked = timeline.Asked(
            revisions=revisions,
            emulate=emulate,
            measuring=Measuring(margin=margin / 100) if gpu else None,
            tools=common.tools(loaded, nvcc),
            limits=parse_limits(limit),
            executor=executor,
            on_progress=bars,
        )
        found = timeline.trace(loaded, wanted, asked)
    if markdown:
        print_text(rendering.render(report.timeline(found)))
    else:
        output("history", found, report.timeline(found), json)
