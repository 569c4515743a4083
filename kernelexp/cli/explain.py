"""kernelexp explain: why an experiment came out as it did, as far as its evidence goes."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import print_document, print_json, print_text, progress_bars
from kernelexp.cli.options import (
    HERE,
    EmulateOption,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
)
from kernelexp.errors import UsageError


@app.command()
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            autocompletion=complete(experiment_names),
            help="Id of an experiment or of a step of the history.",
        ),
    ],
    candidate: Annotated[
        int,
        typer.Option("--candidate", metavar="N", min=1, help="Which of several candidates."),
    ] = 1,
    emulate: EmulateOption = True,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Explain an experiment: differences, expectations, limits of the chip.

    The variants are built and emulated as they are now; times and profiles are those on record. No
    cause is stated: what would decide it is named, with the command that supplies it.

    For example:
        kernelexp explain T1
        kernelexp explain T3 --candidate 2
    """
    from kernelexp import examine
    from kernelexp.report import explanation as report
    from kernelexp.report import markdown as marking

    loaded = common.load(project)
    written = loaded.experiment(name)
    if candidate > len(written.candidates):
        count = len(written.candidates)
        several = f"{count} candidates" if count > 1 else "one candidate"
        raise UsageError(f"{name} has {several}: there is no --candidate {candidate}.")
    tools = common.tools(loaded, nvcc)
    with progress_bars(loaded.root) as bars:
        asked = examine.Asked(
            tools=tools, limits=parse_limits(limit), emulate=emulate, on_progress=bars
        )
        one, other, standing = examine.experiment(loaded, name, candidate, asked)
    found = report.assemble(name, written, candidate, standing, one, other)
    if json:
        print_json("explain", report.to_values(found))
    elif markdown:
        print_text(marking.render(report.render(found)))
    else:
        print_document(report.render(found))
