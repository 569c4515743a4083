"""kernelexp sweep: all combinations of some axes' values, raced for the fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits, parse_seconds
from kernelexp.cli.completion import complete, sweep_words
from kernelexp.cli.console import output, print_text, progress_bars
from kernelexp.cli.options import (
    HERE,
    DeviceOption,
    JsonOption,
    LimitOption,
    MarginOption,
    NvccOption,
    ProjectOption,
    VerboseOption,
)
from kernelexp.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.runner import Outcome


@app.command()
def sweep(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL[@ARCH] AXIS=VALUES...",
            autocompletion=complete(sweep_words),
            help="The kernel, then axes with values: stages=4,5 or store='*' for all.",
        ),
    ],
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="AXIS=VALUE",
            help="Compare with this instead of the defaults. Repeatable.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="AXIS,AXIS", help="Also show a map of two axes.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be compared; build nothing.")
    ] = False,
    experiment: Annotated[
        int | None,
        typer.Option(
            "--experiment",
            metavar="ROW",
            help="Print a row of the kernel's latest sweep as an experiment; run nothing.",
        ),
    ] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate/--no-emulate", help="Execute the PTX on the CPU.")
    ] = False,
    gpu: Annotated[
        bool, typer.Option("--gpu/--no-gpu", help="Time what this machine's GPU can run.")
    ] = True,
    device: DeviceOption = None,
    budget: Annotated[
        str,
        typer.Option("--budget", metavar="TIME", help="Time limit for measuring: 90s, 5m."),
    ] = "90s",
    margin: MarginOption = 1.0,
    size: Annotated[
        str, typer.Option("--size", metavar="NAME", help="Which size of problem.py to time.")
    ] = "full",
    shared_gpu: Annotated[
        bool,
        typer.Option("--shared-gpu", help="Measure even if another process uses the GPU."),
    ] = False,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    no_record: Annotated[bool, typer.Option("--no-record", help="Write no record.")] = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Compare all combinations of some axes' values, raced for the fastest.

    A sweep that is interrupted goes on where it was when it is started again.

    For example: kernelexp sweep transpose rows='*' layout=padded,swizzled --by rows,layout
    """
    from kernelexp import sweep as service
    from kernelexp.evidence.measured import Measuring
    from kernelexp.measurement import Options
    from kernelexp.project import editing
    from kernelexp.report import sweep as report
    from kernelexp.runner import Settings

    if json and csv:
        raise UsageError("--json and --csv do not go together: choose one.")
    loaded = common.load(project)
    if experiment is not None:
        record = service.latest(loaded, words[0])
        print_text(editing.to_yaml(service.experiment_of(loaded, record, experiment)))
        return
    grid = service.plan(loaded, words[0], words[1:], baseline or ())
    mapped = service.parse_map(list(grid.swept), by) if by else None
    limits = parse_limits(limit)
    if dry_run:
        refused = service.refusals(loaded, grid, limits)
        values = {"sweep": grid, "refused": refused}
        output(values, report.planned(grid, refused), json)
        return
    options = Options(
        peers=False,
        shared_gpu=shared_gpu,
        problem_timeout_s=limits.problem_s,
    )
    settings = Settings(
        emulate=emulate,
        measuring=Measuring(
            options=options,
            device=device,
            margin=margin / 100,
            size=size,
            budget_s=parse_seconds(budget, "--budget"),
        )
        if gpu
        else None,
        keep=not no_record,
        limits=limits,
    )
    tools = common.tools(loaded, nvcc)
    with progress_bars() as bars:
        outcome = service.run(loaded, grid, tools, settings, bars)
    if not no_record:
        common.refresh_log(loaded)
    _print(outcome, mapped, verbose, json, csv)
    raise typer.Exit(service.exit_code(outcome))


def _print(
    outcome: Outcome, mapped: tuple[str, str] | None, verbose: bool, json: bool, csv: bool
) -> None:
    from kernelexp.model import spell_point
    from kernelexp.report import sweep as report

    for variant, fault in outcome.faults:
        typer.echo(f"error: {spell_point(variant.axes)}: {fault}", err=True)
    record = outcome.record
    if record is None:
        return
    path = str(outcome.path) if outcome.path else ""
    if csv:
        print_text(report.to_csv(record))
    else:
        values = {**report.to_values(record), "path": path or None}
        output(values, report.render(record, mapped, path, verbose), json)
