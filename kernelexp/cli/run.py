"""kernelexp run: experiments, from their variants to a recorded verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import chosen, parse_measuring, parse_sets, show
from kernelexp.cli.completion import experiment_names
from kernelexp.cli.options import HERE, argument, option
from kernelexp.dossier.session import Session
from kernelexp.model.errors import UsageError
from kernelexp.project import Project


@app.command()
def run(
    experiments: Annotated[
        list[str] | None,
        argument(
            "[EXPERIMENT]...",
            "Ids of experiments or of steps of the history.",
            completion=experiment_names,
        ),
    ] = None,
    every: Annotated[bool, option("--all", "Run all experiments and the whole history.")] = False,
    repeat: Annotated[
        str | None, option("--record RUN", "Repeat a run with its own sources.")
    ] = None,
    set_: options.Set = None,
    emulate: options.Emulate = True,
    gpu: options.Gpu = True,
    device: options.Device = None,
    devices: options.Devices = None,
    scheduler: options.Scheduler = None,
    budget: options.Budget = None,
    processes: options.Processes = 4,
    margin: options.Margin = 1.0,
    size: options.ExperimentSize = None,
    l2: options.L2 = options.L2State.cold,
    peers: options.Peers = True,
    shared_gpu: options.SharedGpu = False,
    sanitize: Annotated[
        bool, option("--sanitize", "Run compute-sanitizer on variants that fail.")
    ] = False,
    reproduce: Annotated[
        bool, option("--reproduce", "Exit with 1 if an earlier record is not reproduced.")
    ] = False,
    modelled: Annotated[
        bool, option("--modelled", "Say what the model of time makes of each candidate.")
    ] = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
    no_record: Annotated[
        bool, option("--no-record", "Write neither a record nor the log.")
    ] = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Run experiments: build, emulate, time, judge, record.

    Without a GPU of the right architecture, variants are built and emulated, and the verdict is
    UNMEASURED. --record repeats a recorded run, with its own sources.

    For example:
        kernelexp run F3 F6
        kernelexp run F3 --set stages=4 --no-record
    """
    from kernelexp.services.run import conclusion, runner

    loaded = common.load(project, sources=not repeat)
    if repeat and (experiments or every or set_):
        raise UsageError("--record repeats one run: leave out experiments, --all and --set.")
    if modelled and (repeat or set_):
        raise UsageError("--modelled is for experiments as written: leave out --record and --set.")
    names = [] if repeat else chosen(loaded, experiments or [], every)
    overrides = {name: parse_sets(loaded, name, set_) for name in names} if set_ else {}
    settings = conclusion.RunSettings(
        measuring=parse_measuring(
            gpu,
            limit,
            margin=margin,
            size=size or "",
            budget=budget,
            processes=processes,
            l2=l2,
            peers=peers,
            shared_gpu=shared_gpu,
            sanitize=sanitize,
        ),
        keep=not no_record,
    )
    with common.session(
        loaded, nvcc, limit, emulate=emulate, device=device, devices=devices, scheduler=scheduler
    ) as session:
        if repeat:
            outcomes = runner.repeat(loaded, repeat, session, settings)
        else:
            outcomes = runner.run(loaded, names, session, settings, overrides)
        sentences = _modelled(loaded, names, session) if modelled else []
    if not no_record:
        common.refresh_log(loaded)
    show(loaded, outcomes, verbose, json)
    for sentence in sentences:  # beside the record, which has measured times only
        typer.echo(sentence, err=json)
    raise typer.Exit(runner.exit_code(outcomes, reproduce))


def _modelled(loaded: Project, names: Sequence[str], session: Session) -> list[str]:
    from kernelexp.services import modelling

    written = {name: loaded.experiment(name) for name in names}
    return [
        f"{name}, candidate {number}: {modelling.compare(loaded, experiment, number, session)}"
        for name, experiment in written.items()
        for number in range(1, len(loaded.variants(experiment)[1]) + 1)
    ]
