"""kernelexp emulate: variants executed on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import msgspec
import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import chosen, parse_isas, parse_variants
from kernelexp.cli.completion import variant_names
from kernelexp.cli.console import output, print_message
from kernelexp.cli.modes import refuse_all_but, refuse_other_modes
from kernelexp.cli.options import HERE, ISA_HELP, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from kernelexp.evidence.emulate.emulated import EmulationOptions
    from kernelexp.model.errors import KernelexpError
    from warpsim.schedule import Schedule


WITH_RECOUNT = "With --recount"


@app.command()
def emulate(
    ctx: typer.Context,
    variants: Annotated[
        list[str] | None,
        argument(
            "[VARIANT]...",
            "KERNEL, KERNEL@ARCH, KERNEL@ARCH:axis=value,... or an experiment's id; with "
            "--recount an experiment or a run.",
            completion=variant_names,
        ),
    ] = None,
    recount: Annotated[
        bool,
        option(
            "--recount",
            "Count recorded runs again from their own sources; their times and verdicts stay.",
        ),
    ] = False,
    every: Annotated[bool, option("--all", "Recount every recorded run.", WITH_RECOUNT)] = False,
    set_: options.Set = None,
    size: Annotated[
        str, option("--size NAME", "Which size of problem.py to execute.")
    ] = "emulated",
    full: Annotated[
        bool, option("--full", "Extrapolate counters to the full problem from two sizes.")
    ] = False,
    schedules: Annotated[
        int | None, option("--schedules N", "Number of schedules; 3 by default.", min=1, max=1000)
    ] = None,
    schedule: Annotated[
        str | None, option("--schedule SEED", "Only this schedule, as in 'seed 5, late'.")
    ] = None,
    first: Annotated[
        bool, option("--first", "End a launch at its first fault instead of looking for others.")
    ] = False,
    isa: Annotated[str, option("--isa ISA", ISA_HELP)] = "both",
    pedantic: options.Pedantic = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Execute variants on the CPU: result, barriers, counters.

    --recount emulates recorded runs again and keeps the new counters beside their records. A
    variant that today's compiler translates differently is left out.

    For example:
        kernelexp emulate transpose@sm_90a:layout=plain
        kernelexp emulate patch_embed_gemm@sm_100a --set store=direct_v8 --full
        kernelexp emulate --recount T1 T2
    """
    if recount:
        refuse_all_but(ctx, "--recount", "recount", "every", "json", "limit", "nvcc", "project")
        _recount(variants or [], every, project, nvcc, limit, json)
    refuse_other_modes(ctx)
    if not variants:
        raise UsageError("name the variants to emulate (kernelexp show lists kernels and axes).")
    code, _ = execute(
        variants,
        project,
        nvcc,
        sets=set_,
        how=_how(size, schedules, schedule, first, pedantic, isa),
        full=full,
        verbose=verbose,
        json=json,
        limit=limit,
    )
    raise typer.Exit(code)


def execute(
    names: list[str],
    start: Path,
    nvcc: str | None,
    *,
    sets: list[str] | None = None,
    how: EmulationOptions | None = None,
    full: bool = False,
    verbose: bool = False,
    json: bool = False,
    limit: list[str] | None = None,
) -> tuple[int, list[KernelexpError]]:
    """Emulates these variants and prints the evidence; its exit code, and what failed."""
    from kernelexp.dossier import emulations
    from kernelexp.evidence.emulate.emulated import EmulationOptions
    from kernelexp.report.variants import emulations as report

    loaded = common.load(start)
    wanted = parse_variants(loaded, names, sets)
    with common.session(loaded, nvcc, limit) as session:
        emulated_variants, faults = emulations.emulate(
            loaded, wanted, session, how or EmulationOptions(), full=full
        )
    for fault in faults:
        print_message(f"error: {fault}")
    output("emulate", emulated_variants, report.render(emulated_variants, verbose), json)
    return emulations.exit_code([one.arm for one in emulated_variants], faults), faults


def _recount(
    names: list[str],
    every: bool,
    start: Path,
    nvcc: str | None,
    limit: list[str] | None,
    json: bool,
) -> NoReturn:
    """Recorded runs, counted as today's emulator counts."""
    from kernelexp.report.variants import emulations as report
    from kernelexp.services import recounting

    loaded = common.load(start, sources=False)
    wanted = recounting.find(loaded, chosen(loaded, names, every))
    with common.session(loaded, nvcc, limit) as session:
        recounts = recounting.recount(loaded, wanted, session)
    common.refresh_log(loaded)
    output("recount", recounts, report.recounted(recounts), json)
    raise typer.Exit(recounting.exit_code(recounts))


def _how(
    size: str, count: int | None, named: str | None, first: bool, pedantic: bool, isa: str
) -> EmulationOptions:
    from kernelexp.evidence.emulate.emulated import EmulationOptions
    from warpsim import schedule

    if count is not None and named is not None:
        raise UsageError("--schedules and --schedule exclude each other.")
    chosen: tuple[Schedule, ...] | None = None
    if named:
        chosen = (schedule.parse(named),)
    elif count or first:
        chosen = schedule.first_schedules(count or schedule.USUAL)
    if chosen and first:
        chosen = tuple(msgspec.structs.replace(one, first=True) for one in chosen)
    return EmulationOptions(size=size, schedules=chosen, pedantic=pedantic, isas=parse_isas(isa))
