"""kernelexp history: one variant at each commit of a range."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import refuse_two_forms
from kernelexp.cli.console import output
from kernelexp.cli.options import (
    HERE,
    ArmArgument,
    DeviceOption,
    EmulateOption,
    GpuOption,
    JsonOption,
    LimitOption,
    MarginOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
)


@app.command()
def history(
    variant: ArmArgument,
    revisions: Annotated[
        str,
        typer.Option(
            "--revisions", metavar="A..B", help="The commits after A up to B, along first parents."
        ),
    ],
    emulate: EmulateOption = False,
    gpu: GpuOption = True,
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
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.project import parse_arm
    from kernelexp.report.log import revisions as report
    from kernelexp.services.revisions import timeline

    refuse_two_forms(json, markdown)
    loaded = common.load(project)
    wanted, _, _ = parse_arm(loaded, variant)
    measuring = Measuring(margin=margin / 100) if gpu else None
    with common.session(loaded, nvcc, limit, emulate=emulate, device=device) as session:
        found = timeline.trace(loaded, wanted, revisions, session, measuring)
    output("history", found, report.timeline(found), json, markdown)
