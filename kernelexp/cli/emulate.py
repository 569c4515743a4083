"""kernelexp emulate: variants executed on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_isas, parse_variants
from kernelexp.cli.console import output, print_message
from kernelexp.cli.options import (
    HERE,
    IsaOption,
    JsonOption,
    LimitOption,
    NvccOption,
    PedanticOption,
    ProjectOption,
    SetOption,
    VariantsArgument,
    VerboseOption,
)
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.evidence.emulate.emulated import EmulationOptions
    from warpsim.schedule import Schedule


@app.command()
def emulate(
    variants: VariantsArgument = None,
    set_: SetOption = None,
    size: Annotated[
        str,
        typer.Option("--size", metavar="NAME", help="Which size of problem.py to execute."),
    ] = "emulated",
    full: Annotated[
        bool,
        typer.Option("--full", help="Extrapolate counters to the full problem from two sizes."),
    ] = False,
    schedules: Annotated[
        int | None,
        typer.Option(
            "--schedules", metavar="N", min=1, max=1000, help="Number of schedules; 3 by default."
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule", metavar="SEED", help="Only this schedule, as in 'seed 5, late'."
        ),
    ] = None,
    isa: IsaOption = "both",
    pedantic: PedanticOption = False,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Execute variants on the CPU: result, barriers, counters.

    For example:
        kernelexp emulate transpose@sm_90a:layout=plain
        kernelexp emulate patch_embed_gemm@sm_100a --set store=direct_v8 --full
    """
    how = _how(size, schedules, schedule, pedantic, isa)
    from kernelexp.dossier import emulations
    from kernelexp.report.variants import emulations as report

    loaded = common.load(project)
    if not variants:
        raise UsageError("name the variants to emulate (kernelexp list shows kernels and axes).")
    wanted = parse_variants(loaded, variants, set_)
    with common.session(loaded, nvcc, limit) as session:
        found, faults = emulations.emulate(loaded, wanted, session, how, full=full)
    for fault in faults:
        print_message(f"error: {fault}")
    output("emulate", found, report.render(found, verbose), json)
    raise typer.Exit(emulations.exit_code([each.arm for each in found], faults))


def _how(
    size: str, count: int | None, named: str | None, pedantic: bool, isa: str
) -> EmulationOptions:
    from kernelexp.evidence.emulate.emulated import EmulationOptions
    from warpsim import schedule

    if count is not None and named is not None:
        raise UsageError("--schedules and --schedule exclude each other.")
    chosen: tuple[Schedule, ...] | None = None
    if named:
        chosen = (schedule.parse(named),)
    elif count:
        chosen = schedule.first_schedules(count)
    return EmulationOptions(size=size, schedules=chosen, pedantic=pedantic, isas=parse_isas(isa))
