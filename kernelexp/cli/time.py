"""kernelexp time: variants timed against each other, or a source of your own against one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_measuring, parse_variants, show
from kernelexp.cli.completion import variant_names
from kernelexp.cli.console import output, print_message
from kernelexp.cli.modes import refuse_other_modes
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.dossier.session import Session
    from kernelexp.project import Project
    from kernelexp.services.run.conclusion import RunSettings


WITH_SOURCE = "With --source"


@app.command()
def time(
    ctx: typer.Context,
    variants: Annotated[
        list[str],
        argument(
            "VARIANT...",
            "KERNEL, KERNEL@ARCH:axis=value,... or an experiment's id; the first is the baseline.",
            completion=variant_names,
        ),
    ],
    source: Annotated[
        str | None,
        option(
            "--source FILE",
            "Time this file, or - for standard input, against the variant's own source.",
        ),
    ] = None,
    hostile: Annotated[
        bool,
        option(
            "--hostile",
            "Do not trust the source: compilers read nothing outside of the project, and memory, "
            "time and files are limited.",
            WITH_SOURCE,
        ),
    ] = False,
    record: Annotated[
        bool, option("--record", "Add an experiment with the next id, and record the run.")
    ] = False,
    emulate: options.Emulate = True,
    gpu: options.Gpu = True,
    device: options.Device = None,
    scheduler: options.Scheduler = None,
    budget: options.Budget = None,
    processes: options.Processes = 4,
    margin: options.Margin = 1.0,
    size: options.Size = "full",
    l2: options.L2 = options.L2State.cold,
    peers: options.Peers = False,
    shared_gpu: options.SharedGpu = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Time variants against each other, or a source of your own against a variant's.

    Like `run`, but without an experiment: interleaved, with a placebo, in fresh processes. With
    --source, the file is built with the variant's axes, checked against the kernel's problem.py,
    and timed next to the project's own source; nothing is recorded.

    For example:
        kernelexp time transpose@sm_90a:rows=8 transpose@sm_90a:rows=4
        kernelexp time transpose@sm_90a:rows=4 --source mine.cu --json
    """
    from kernelexp.services.run import conclusion, lineup, runner

    if source is None:
        refuse_other_modes(ctx)
    elif record or scheduler or len(variants) > 1:
        raise UsageError(
            "--source is timed against one variant, here, and is not recorded: leave out others, "
            "--record and --scheduler."
        )
    loaded = common.load(project)
    measuring = parse_measuring(
        gpu,
        limit,
        margin=margin,
        size=size,
        budget=budget,
        processes=processes,
        l2=l2,
        peers=peers,
        shared_gpu=shared_gpu,
    )
    settings = conclusion.RunSettings(measuring=measuring, keep=record)
    if source is not None:
        with common.session(loaded, nvcc, limit, emulate=emulate, device=device) as session:
            _source(loaded, variants[0], source, session, settings, hostile, verbose, json)
    experiment = lineup.plan(loaded, parse_variants(loaded, variants, None))
    if record:
        name, _ = lineup.add(loaded, experiment)
        loaded = common.load(project)
        print_message(f"added {name}, {loaded.place(name)}")
    else:
        name, loaded = lineup.NAME, lineup.alone(loaded, experiment)
    with common.session(
        loaded, nvcc, limit, emulate=emulate, device=device, scheduler=scheduler
    ) as session:
        outcomes = runner.run(loaded, [name], session, settings)
    if record:
        common.refresh_log(loaded)
    show(loaded, outcomes, verbose, json)
    raise typer.Exit(runner.exit_code(outcomes))


def _source(
    loaded: Project,
    variant: str,
    source: str,
    session: Session,
    settings: RunSettings,
    hostile: bool,
    verbose: bool,
    json: bool,
) -> NoReturn:
    """A file's text instead of the variant's own source."""
    from kernelexp.project import parse_variant
    from kernelexp.report.runs import page
    from kernelexp.services import evaluation

    wanted = parse_variant(loaded, variant)
    text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    evaluated = evaluation.evaluate(loaded, wanted, text, session, settings, hostile=hostile)
    output("time", evaluated, page.render(evaluated.record, verbose=verbose), json)
    raise typer.Exit(evaluation.exit_code(evaluated))
