"""kernelexp log: the history of committed steps, and the experiments with their verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.console import output, print_document, print_json, print_message, print_text
from kernelexp.cli.modes import refuse_all_but
from kernelexp.cli.options import HERE, option
from kernelexp.model import errors
from kernelexp.model.errors import UsageError


@app.command()
def log(
    ctx: typer.Context,
    write: Annotated[
        bool, option("--write", "Render logs/EXPERIMENTS.md instead of printing.")
    ] = False,
    force: Annotated[
        bool, option("--force", "Overwrite a log that kernelexp did not write.")
    ] = False,
    check: Annotated[
        bool, option("--check", "Exit with 1 if logs/EXPERIMENTS.md is out of date.")
    ] = False,
    recompile: Annotated[
        bool,
        option(
            "--recompile",
            "Compile what was changed since a record, as it was and as it is: with the same "
            "machine code, the record still stands.",
        ),
    ] = False,
    json: options.Json = False,
    csv: options.Csv = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Print the log: history and experiments with verdicts.

    A table on a terminal, markdown in a pipe.
    """
    from kernelexp.report import export
    from kernelexp.report.document.document import as_markdown
    from kernelexp.report.log import logbook
    from kernelexp.services import kernel_logs

    names = ("--write", "--check", "--json", "--csv")
    given = [name for name, on in zip(names, (write, check, json, csv), strict=True) if on]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} do not go together: choose one.")
    if force and not write:
        raise UsageError("--force goes with --write.")
    if recompile:
        refuse_all_but(ctx, "--recompile", "recompile", "json", "limit", "nvcc", "project")
        _recompile(project, nvcc, limit, json)
    if limit or nvcc:
        raise UsageError("--limit and --nvcc go with --recompile.")
    loaded = common.load(project, sources=False)
    if write:
        changed = common.write_log(loaded, force)
        typer.echo(f"wrote {logbook.NAME}" if changed else f"{logbook.NAME} is up to date")
        return
    logs = kernel_logs.assemble(loaded)
    common.warn(loaded.root, (unreadable for one in logs for unreadable in one.unreadable))
    if not logs and not (check or json or csv):
        print_message("note: there are no experiments yet: kernelexp new adds one")
    elif check:
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
        print_text(as_markdown(logbook.tables(logs)))


def _recompile(start: Path, nvcc: str | None, limit: list[str] | None, json: bool) -> NoReturn:
    """Changed sources and those of records, compiled."""
    from kernelexp.report.log import recompiled
    from kernelexp.services import recompiling

    loaded = common.load(start)
    with common.session(loaded, nvcc, limit) as session:
        results = recompiling.recompile(loaded, session)
    common.refresh_log(loaded)
    output("recompile", results, recompiled.render(results), json)
    raise typer.Exit()
