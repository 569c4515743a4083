"""kernelexp compare: what changed between two variants, records or profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, NvccOption, ProjectOption
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    import re
    from pathlib import Path

    from kernelexp.services.comparisons import Comparison, ComparisonOptions

_SUBJECT = (
    "An experiment's id (its latest run), a run's name, a record's file, a variant "
    "KERNEL@ARCH:axis=value, a CSV page or .ncu-rep report of ncu, or a profile's run; F3:baseline "
    "or F3:2 for an arm, FILE:2 for a launch."
)


@app.command()
def compare(
    before: Annotated[
        str,
        typer.Argument(metavar="A", help=_SUBJECT, autocompletion=complete(experiment_names)),
    ],
    after: Annotated[
        str | None,
        typer.Argument(
            metavar="[B]",
            help="Likewise; without it A's baseline is compared with its candidate.",
            autocompletion=complete(experiment_names),
        ),
    ] = None,
    floor: Annotated[
        float,
        typer.Option(
            "--floor", min=0.0, max=1000.0, metavar="PERCENT", help="Smallest change to show."
        ),
    ] = 5.0,
    every: Annotated[
        bool, typer.Option("--all", help="Show counters of every group, even shares near 0.")
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="REGEX", help="Show these metrics, changed or not."),
    ] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Emulate variants that have no stored emulation.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown.")] = False,
    json: JsonOption = False,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Compare two variants, records or profiles: what changed most.

    For example:
        kernelexp compare F3
        kernelexp compare baseline.csv after.csv
    """
    from kernelexp.report.compared import differences
    from kernelexp.services import comparisons

    options = comparisons.ComparisonOptions(floor=floor / 100, every=every, metric=_pattern(metric))
    found = _compare(before, after, options, emulate, nvcc, project)
    document = differences.render(found, names=markdown)
    output("compare", differences.to_values(found), document, json, markdown)


def _compare(
    before: str,
    after: str | None,
    options: ComparisonOptions,
    emulate: bool,
    nvcc: str | None,
    start: Path,
) -> Comparison:
    from kernelexp.dossier import subjects
    from kernelexp.services import comparisons

    texts = (before,) if after is None else (before, after)
    project = None if all(map(subjects.is_file, texts)) else common.load(start, sources=False)
    one, other = (before, after) if after is not None else subjects.pair(project, before)
    if project is not None and any(subjects.is_variant(project, text) for text in (one, other)):
        project = common.load(start)
        with common.session(project, nvcc, emulate=emulate) as session:
            sides = subjects.find_both(project, one, other, session)
    else:
        sides = subjects.find_both(project, one, other)
    return comparisons.compare(*sides, options)


def _pattern(text: str | None) -> re.Pattern[str] | None:
    import re

    try:
        return re.compile(text, re.IGNORECASE) if text is not None else None
    except re.error as error:
        raise UsageError(f"--metric {text!r} is no regular expression: {error}.") from None
