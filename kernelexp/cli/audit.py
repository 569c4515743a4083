"""kernelexp audit: a performance audit of a variant, written from the records."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import refuse_two_forms
from kernelexp.cli.completion import complete, variant_names
from kernelexp.cli.console import print_document, print_json
from kernelexp.cli.options import (
    HERE,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
)


@app.command()
def audit(
    variant: Annotated[
        str,
        typer.Argument(
            metavar="VARIANT",
            autocompletion=complete(variant_names),
            help="An experiment or step of the history (:2 or :baseline for another of its arms), "
            "or KERNEL@ARCH:axis=value,...",
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="OTHER",
            help="The variant to compare with; an experiment's baseline without it.",
        ),
    ] = None,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Write a performance audit of a variant from the records.

    Times with peers, history, problem and solution, shared memory, build, stalls, throughput,
    access efficiency and what else changed; conclusions are left blank, marked TO WRITE. A section
    without evidence names the command that supplies it.

    For example:
        kernelexp audit c32ab7a --against cefc59d --markdown > audit.md
    """
    from datetime import date

    from kernelexp.report.compared import audit as report
    from kernelexp.report.log import log as logs
    from kernelexp.services import auditing

    refuse_two_forms(json, markdown)
    loaded = common.load(project)
    with common.session(loaded, nvcc, limit) as session:
        found = auditing.audit(loaded, variant, against, session)
    today = date.today().isoformat()
    if json:
        print_json("audit", report.to_values(found, today))
        return
    place = (found.kernel, found.arch)
    own = [each for each in logs.assemble(loaded) if (each.kernel, each.arch) == place]
    document = report.render(found, own[0] if own else None, today)
    print_document(document, markdown)
