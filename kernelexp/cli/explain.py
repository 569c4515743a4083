"""kernelexp explain: why an experiment came out as it did, as far as its evidence goes."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import (
    HERE,
    EmulateOption,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
)


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
    from kernelexp.dossier import examine
    from kernelexp.project import require_candidate
    from kernelexp.report.variants import explanation as report

    loaded = common.load(project)
    written = loaded.experiment(name)
    require_candidate(name, written, candidate)
    with common.session(loaded, nvcc, limit, emulate=emulate) as session:
        one, other, standing = examine.experiment(loaded, name, candidate, session)
    found = report.assemble(name, written, candidate, standing, one, other)
    output("explain", report.to_values(found), report.render(found), json, markdown)
