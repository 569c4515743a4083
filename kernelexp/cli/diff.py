"""kernelexp diff: two records side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, ProjectOption

_RUN = "A run's name or the beginning of it, a record's file, or an experiment for its last run."


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=_RUN)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=_RUN)],
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Compare two records: axes, compiler, sources, figures."""
    from kernelexp.logs import records
    from kernelexp.report.compared import comparison

    loaded = common.load(project, sources=False)
    one, other = (records.read_file(records.find(loaded.root, text)) for text in (before, after))
    found = comparison.compare(loaded.root, one, other)
    output("diff", comparison.to_values(found), comparison.render(found), json)
