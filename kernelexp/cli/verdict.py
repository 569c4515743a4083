"""kernelexp verdict: a record judged again, from the samples that it keeps."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, OtherMarginOption, ProjectOption


@app.command()
def verdict(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A measured run's name or the beginning of it, its file, or an experiment.",
        ),
    ],
    margin: OtherMarginOption = None,
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Judge a record again from its samples; needs no GPU.

    For example:
        kernelexp verdict T1 --margin 0.5
    """
    from kernelexp.judge.verdict import exit_code
    from kernelexp.report.document import verdicts
    from kernelexp.services import again

    path = common.record_file(project, record)
    found = again.judge(path, None if margin is None else margin / 100)
    output("verdict", found, verdicts.render(found), json)
    raise typer.Exit(exit_code({each.status for each in found.verdicts}))
