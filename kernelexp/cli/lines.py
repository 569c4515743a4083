"""kernelexp lines: what each source line costs, and each role of the warps."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_isas, parse_variants, refuse_two_forms
from kernelexp.cli.console import output, print_message
from kernelexp.cli.options import (
    HERE,
    IsaOption,
    JsonOption,
    LimitOption,
    NvccOption,
    ProjectOption,
    SetOption,
    VariantsArgument,
)
from kernelexp.model.errors import UsageError

TOP = 10


@app.command()
def lines(
    variants: VariantsArgument = None,
    set_: SetOption = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="METRIC",
            help="What to rank by: stalls, instructions, wavefronts, conflicts, sectors, "
            "tma_sectors, barriers, sass, or any counter by its own name.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, help="How many lines to show; 0 for all.")
    ] = TOP,
    sass: Annotated[
        bool, typer.Option("--sass", help="Show each line's SASS, with its pipes and stalls.")
    ] = False,
    role: Annotated[
        str | None,
        typer.Option(
            "--role", metavar="NAME", help="Only lines that this role runs, alone or not."
        ),
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="NAME", help="Which of the problem's SIZES to execute.")
    ] = "emulated",
    isa: IsaOption = "both",
    json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown.")] = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Show what each source line costs, and each role of the warps.

    Counters are from an execution on the CPU, of SASS where it is covered; stalls are from the
    variant's latest profile.

    For example:
        kernelexp lines transpose@sm_90a:layout=plain --by conflicts
    """
    from kernelexp.dossier import emulations
    from kernelexp.report.variants import lines as report
    from kernelexp.report.variants import lines_values
    from kernelexp.services.lines import service

    loaded = common.load(project)
    if not variants:
        raise UsageError("name the variants to look at (kernelexp show lists kernels and axes).")
    refuse_two_forms(json, markdown)
    wanted = parse_variants(loaded, variants, set_)
    with common.session(loaded, nvcc, limit) as session:
        found, faults = service.look(loaded, wanted, session, size=size, isas=parse_isas(isa))
    for fault in faults:
        print_message(f"error: {fault}")
    values = lines_values.to_values(found, by, top, role, sass) if json else None
    document = report.render(found, by, top, role, sass, markdown=markdown)
    output("lines", values, document, json, markdown)
    raise typer.Exit(emulations.exit_code([each.arm for each in found], faults))
