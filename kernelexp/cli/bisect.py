"""kernelexp bisect: which commit made a variant slower, wrong, or different in a figure."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.console import output
from kernelexp.cli.options import (
    HERE,
    ArmArgument,
    DeviceOption,
    JsonOption,
    LimitOption,
    MarginOption,
    NvccOption,
    ProjectOption,
)
from kernelexp.model import errors


@app.command()
def bisect(
    variant: ArmArgument,
    good: Annotated[str, typer.Option("--good", metavar="REV", help="A revision that is good.")],
    bad: Annotated[str, typer.Option("--bad", metavar="REV", help="A later one that is not.")],
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="time, result (emulated), build, or a built or emulated figure: "
            "launch__registers_per_thread.",
        ),
    ] = "time",
    margin: MarginOption = 1.0,
    device: DeviceOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Find the commit that made a variant slower, wrong or different.

    Each revision is built in a worktree of its own with today's compiler. The
    good revision is timed together with each other one, in the same processes; identical code is
    not timed again.

    For example:
        kernelexp bisect F3 --good v1.2 --bad HEAD --by result
    """
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.project import parse_arm
    from kernelexp.report.log import revisions as report
    from kernelexp.services.revisions import bisecting

    loaded = common.load(project)
    wanted, _, _ = parse_arm(loaded, variant)
    measuring = Measuring(margin=margin / 100)
    request = bisecting.BisectRequest(good=good, bad=bad, by=by, measuring=measuring)
    with common.session(loaded, nvcc, limit, device=device) as session:
        found = bisecting.bisect(loaded, wanted, request, session)
    output("bisect", found, report.bisected(found), json)
    raise typer.Exit(errors.OK if len(found.first_bad) == 1 else errors.INCONCLUSIVE)
