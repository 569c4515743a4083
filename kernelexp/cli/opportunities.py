"""kernelexp opportunities: what could be gained in a variant, ranked."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits, parse_variants
from kernelexp.cli.completion import complete, variant_names
from kernelexp.cli.console import print_document, print_json, print_text, progress_bars
from kernelexp.cli.options import (
    HERE,
    EmulateOption,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
    SetOption,
)
from kernelexp.errors import UsageError


@app.command()
def opportunities(
    variant: Annotated[
        str,
        typer.Argument(
            metavar="VARIANT",
            autocompletion=complete(variant_names),
            help="KERNEL, KERNEL@ARCH or KERNEL@ARCH:axis=value,...",
        ),
    ],
    set_: SetOption = None,
    emulate: EmulateOption = True,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Rank what could be gained in a variant: bank conflicts, occupancy, tail waves.

    Each estimate says how it was computed. If the variant was profiled, ncu's own rules are used,
    and those known to be false are named.

    For example:
        kernelexp opportunities transpose@sm_90a:layout=plain
    """
    from kernelexp import examine
    from kernelexp.judge import bounds
    from kernelexp.judge import opportunities as rules
    from kernelexp.report import markdown as marking
    from kernelexp.report import opportunities as report

    loaded = common.load(project)
    wanted = parse_variants(loaded, [variant], set_)
    if len(wanted) != 1:
        raise UsageError(
            f"{variant} is an experiment: name one variant, or see kernelexp explain {variant}."
        )
    tools = common.tools(loaded, nvcc)
    with progress_bars(loaded.root) as bars:
        asked = examine.Asked(
            tools=tools, limits=parse_limits(limit), emulate=emulate, on_progress=bars
        )
        examined = examine.variant(loaded, wanted[0], asked)
    case = examined.case
    found, suppressed = rules.find(case)
    uses = bounds.uses(case)
    if json:
        print_json("opportunities", report.to_values(examined, uses, found, suppressed))
        return
    document = report.render(examined, uses, found, suppressed)
    if markdown:
        print_text(marking.render(document))
    else:
        print_document(document)
