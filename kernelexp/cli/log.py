"""kernelexp log: the history of committed steps, and the experiments with their verdicts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.console import print_document, print_json, print_text
from kernelexp.cli.options import HERE, option
from kernelexp.model import errors
from kernelexp.model.errors import UsageError


@app.command()
def log(
    write: Annotated[
        bool, option("--write", "Render logs/EXPERIMENTS.md instead of printing.")
    ] = False,
    force: Annotated[
        bool, option("--force", "Overwrite a log that kernelexp did not write.")
    ] = False,
    check: Annotated[
        bool, option("--check", "Exit with 1 if logs/EXPERIMENTS.md is out of date.")
    ] = False,
    json: options.Json = False,
    csv: options.Csv = False,
    project: options.Project = HERE,
) -> None:
    """Print the log: history and experiments with verdicts.

    A table on a terminal, markdown in a pipe.
    """
    from kernelexp.report import export
    from kernelexp.report.document import markdown
    from kernelexp.report.log import logbook
    from kernelexp.services import kernel_logs

    names = ("--write", "--check", "--json", "--csv")
    given = [name for name, on in zip(names, (write, check, json, csv), strict=True) if on]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} do not go together: choose one.")
    if force and not write:
        raise UsageError("--force goes with --write.")
    loaded = common.load(project, sources=False)
    if write:
        changed = common.write_log(loaded, force)
        typer.echo(f"wrote {logbook.NAME}" if changed else f"{logbook.NAME} is up to date")
        return
    logs = kernel_logs.assemble(loaded)
    common.warn(loaded.root, (unreadable for one in logs for unreadable in one.unreadable))
    if check:
        if not logbook.is_current(loaded.root, logbook.file(logs)):
            typer.echo(f"{logbook.NAME} is out of date: render it with `kernelexp log --write`.")
            raise typer.Exit(errors.REGRESSION)
    elif json:
        print_json("log", [one.logged() for one in logs])
    elif csv:
        print_text(export.log([one.logged() for one in logs]))
    elif sys.stdout.isatty():
        print_document(logbook.tables(logs))
    else:
        print_text(markdown.render(logbook.tables(logs)))
