"""kernelexp import: a log that was kept by hand, as experiments and published records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.options import HERE, ProjectOption


@app.command("import")
def import_(
    log: Annotated[Path, typer.Argument(metavar="LOG.md", help="The log, in markdown.")],
    kernel: Annotated[
        str, typer.Option("--kernel", metavar="NAME", help="The kernel's name, if not in the log.")
    ] = "",
    arch: Annotated[
        str, typer.Option("--arch", metavar="SM", help="Its architecture, if not in the log.")
    ] = "",
    source: Annotated[
        str,
        typer.Option("--source", metavar="TEXT", help="Where the figures are from, for records."),
    ] = "",
    project: ProjectOption = HERE,
) -> None:
    """Import a hand-kept log: history, experiments, results.

    It becomes a kernel with one axis, whose values are the states that the log
    mentions. Figures
    become published records; all other words of an experiment stay in its notes, and the log is
    copied to logs/imported.
    """
    from kernelexp.services.handlog import service

    loaded = common.load(project)
    done = service.write(loaded, log, kernel, arch, source)
    steps, experiments = len(done.log.steps), len(done.log.experiments)
    typer.echo(
        f"imported {steps} step{'s' * (steps != 1)} and {experiments} "
        f"experiment{'s' * (experiments != 1)} of {done.kernel}"
    )
    for doubt in done.log.doubts:
        typer.echo(f"unclear: {doubt}")
    for kept in done.log.kept:
        typer.echo(f"kept as text: {kept}")
    typer.echo(f"wrote {os.path.relpath(done.copy)}, the whole log")
    common.refresh_log(common.load(loaded.root))
    typer.echo("next: kernelexp log")
