"""kernelexp import: a log that was kept by hand, as experiments and published records."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.options import HERE, ProjectOption
from kernelexp.model.errors import UsageError


def _ask(role: str, headings: Sequence[str]) -> str | None:
    """On a terminal: which column of a table has a role."""
    for number, heading in enumerate(headings, 1):
        typer.echo(f"  {number}: {heading}")
    choice: int = typer.prompt(f"which column is the {role}? (0: not this table)", type=int)
    if not 0 <= choice <= len(headings):
        raise UsageError(f"{choice} is none of the columns 0 to {len(headings)}.")
    return headings[choice - 1] if choice else None


@app.command("import")
def import_(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: markdown, .csv or .tsv.")],
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
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="ROLE=HEADING",
            help="What a column of a table is: id, title, time, tflops, registers, verdict, date "
            "or commit, if its heading does not say. Repeatable.",
        ),
    ] = None,
    project: ProjectOption = HERE,
) -> None:
    """Import a hand-kept log: history, experiments, results.

    It becomes a kernel with one axis, whose values are the states that the log mentions. Figures
    become published records; all other words of an experiment stay in its notes, and the log is
    copied to logs/imported. Of a table in another form, each row is compared with the last one
    before it that was kept.

    For example:
        kernelexp import notes.md --kernel gemm --arch sm_90a --column time=speed
    """
    from kernelexp.services.handlog import service, tables

    loaded = common.load(project)
    columns = tables.parse_columns(column or [])
    asking = _ask if sys.stdin.isatty() else None
    done = service.write(loaded, log, kernel, arch, source, columns, asking)
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
