"""`kernelexp adopt --log`: turns a log kept by hand into experiments and published records."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from kernelexp.cli import common
from kernelexp.model.errors import UsageError


def adopt(
    log: Path, kernel: str, arch: str, source: str, column: Sequence[str], project: Path
) -> None:
    """Writes what the log has to the project, and says what was unclear."""
    from kernelexp.services.handlog import service, tables

    loaded = common.load(project)
    columns = tables.parse_columns(column)
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


def _ask(role: str, headings: Sequence[str]) -> str | None:
    """Asks on a terminal which column of a table has a role."""
    for number, heading in enumerate(headings, 1):
        typer.echo(f"  {number}: {heading}")
    choice: int = typer.prompt(f"which column is the {role}? (0: not this table)", type=int)
    if not 0 <= choice <= len(headings):
        raise UsageError(f"{choice} is none of the columns 0 to {len(headings)}.")
    return headings[choice - 1] if choice else None
