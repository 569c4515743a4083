"""kernelexp time: variants timed against each other, without an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits, parse_seconds, parse_variants
from kernelexp.cli.completion import complete, variant_names
from kernelexp.cli.console import print_message
from kernelexp.cli.options import (
    HERE,
    BudgetOption,
    DeviceOption,
    EmulateOption,
    GpuOption,
    JsonOption,
    L2Option,
    L2State,
    LimitOption,
    MarginOption,
    NvccOption,
    PeersOption,
    ProcessesOption,
    ProjectOption,
    SchedulerOption,
    SharedGpuOption,
    SizeOption,
    VerboseOption,
)
from kernelexp.cli.outcomes import show


@app.command()
def time(
    variants: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            autocompletion=complete(variant_names),
            help="KERNEL, KERNEL@ARCH:axis=value,... or an experiment's id; the first is the "
            "baseline.",
        ),
    ],
    record: Annotated[
        bool,
        typer.Option("--record", help="Add an experiment with the next id, and record the run."),
    ] = False,
    emulate: EmulateOption = True,
    gpu: GpuOption = True,
    device: DeviceOption = None,
    scheduler: SchedulerOption = None,
    budget: BudgetOption = None,
    processes: ProcessesOption = 4,
    margin: MarginOption = 1.0,
    size: SizeOption = "full",
    l2: L2Option = L2State.cold,
    peers: PeersOption = False,
    shared_gpu: SharedGpuOption = False,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Time variants against each other, now.

    Like `run`, but without an experiment: interleaved, with a placebo, in fresh processes.

    For example:
        kernelexp time transpose:rows=8 transpose:rows=4 transpose:rows=16
    """
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.model.measurement import Options
    from kernelexp.services import lineup
    from kernelexp.services.run import runner, runs

    loaded = common.load(project)
    experiment = lineup.plan(loaded, parse_variants(loaded, variants, None))
    limits = parse_limits(limit)
    measuring = Measuring(
        options=Options(
            processes=processes,
            l2=l2.value,
            peers=peers,
            shared_gpu=shared_gpu,
            problem_timeout_s=limits.problem_s,
        ),
        margin=margin / 100,
        size=size,
        budget_s=parse_seconds(budget, "--budget") if budget else None,
    )
    if record:
        name, _ = lineup.add(loaded, experiment)
        loaded = common.load(project)
        print_message(f"added {name}, {loaded.place(name)}")
    else:
        name, loaded = lineup.NAME, lineup.alone(loaded, experiment)
    settings = runs.RunSettings(measuring=measuring if gpu else None, keep=record)
    with common.session(
        loaded, nvcc, limit, emulate=emulate, device=device, scheduler=scheduler
    ) as session:
        outcomes = runner.run(loaded, [name], session, settings)
    if record:
        common.refresh_log(loaded)
    show(loaded, outcomes, verbose, json)
    raise typer.Exit(runner.exit_code(outcomes))
