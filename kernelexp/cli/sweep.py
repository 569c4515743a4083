"""kernelexp sweep: all combinations of some axes' values, raced for the fastest."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_limits, parse_measuring, parse_seconds
from kernelexp.cli.completion import sweep_words
from kernelexp.cli.console import output, print_message, print_text
from kernelexp.cli.modes import refuse_other_modes
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.dossier.session import Session
    from kernelexp.project import Project
    from kernelexp.services.run.conclusion import Concluded
    from kernelexp.services.run.sweep import Grid


WITH_STRATEGY = "With --strategy"
BUDGET_S = 90.0


class StrategyName(StrEnum):
    """The names of kernelexp.services.run.search.Strategy, which is not loaded for --help."""

    tpe = "tpe"
    genetic = "genetic"
    random = "random"


class VariantOrder(StrEnum):
    """The order in which variants are timed."""

    grid = "grid"
    modelled = "modelled"


@app.command()
def sweep(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        argument(
            "KERNEL[@ARCH] AXIS=VALUES...",
            "The kernel, then axes with values: stages=4,5 or store='*' for all.",
            completion=sweep_words,
        ),
    ],
    baseline: Annotated[
        list[str] | None,
        option("--baseline AXIS=VALUE", "Compare with this instead of the defaults. Repeatable."),
    ] = None,
    strategy: Annotated[
        StrategyName | None,
        option(
            "--strategy",
            "Search a space that is too large to exhaust; all axes unless some are named.",
        ),
    ] = None,
    trials: Annotated[int, option("--trials N", "Variants to try.", WITH_STRATEGY, min=2)] = 32,
    seed: Annotated[
        int, option("--seed N", "Seed of the search.", WITH_STRATEGY, min=0, max=2**32 - 1)
    ] = 0,
    objective: Annotated[
        str,
        option(
            "--objective METRIC",
            "What to improve: time_ms, modelled, or a built or emulated figure.",
            WITH_STRATEGY,
        ),
    ] = "time_ms",
    order: Annotated[
        VariantOrder,
        option(
            "--order",
            "Race in this order; with --budget, what is modelled far behind is not timed.",
        ),
    ] = VariantOrder.grid,
    by: Annotated[str, option("--by AXIS,AXIS", "Also show a map of two axes.")] = "",
    dispatch: Annotated[
        list[Path] | None,
        option(
            "--dispatch FILE",
            "Write which variant is the best at which size: .hpp or .json. Repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", "Say what would be compared; build nothing.")
    ] = False,
    experiment: Annotated[
        int | None,
        option(
            "--experiment ROW",
            "Print a row of the kernel's latest sweep as an experiment; run nothing.",
        ),
    ] = None,
    emulate: options.Emulate = False,
    gpu: options.Gpu = True,
    device: options.Device = None,
    devices: options.Devices = None,
    scheduler: options.Scheduler = None,
    budget: Annotated[
        str | None,
        option(
            "--budget TIME", "Time limit for measuring: 5m. Default: 90s; none with --strategy."
        ),
    ] = None,
    margin: options.Margin = 1.0,
    size: options.Sizes = "full",
    shared_gpu: options.SharedGpu = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
    csv: options.Csv = False,
    no_record: Annotated[bool, option("--no-record", "Write no record.")] = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Compare all combinations of some axes' values, raced for the fastest.

    An interrupted sweep continues where it stopped when you start it again.

    For example:
        kernelexp sweep transpose@sm_90a rows='*' layout=padded,swizzled
    """
    from kernelexp.model.experiment import split_sizes
    from kernelexp.project import editing
    from kernelexp.report.runs import dispatch as table
    from kernelexp.report.runs import sweep as report
    from kernelexp.report.runs import sweep_parts
    from kernelexp.services.run import sweep as service
    from kernelexp.services.run import tune
    from kernelexp.services.run.conclusion import RunSettings
    from kernelexp.services.run.search import Strategy
    from kernelexp.services.run.tune import SearchPlan

    for path in dispatch or ():
        table.require(path, size)
        common.require_folder(path)
    if json and csv:
        raise UsageError("--json and --csv do not go together: choose one.")
    _refuse_order(order, strategy)
    refuse_other_modes(ctx, *([WITH_STRATEGY] if strategy else []))
    loaded = common.load(project)
    if experiment is not None:
        record = service.latest(loaded, words[0])
        print_text(editing.to_yaml(service.experiment_of(loaded, record, experiment)))
        return
    if strategy and len(split_sizes(size)) > 1:
        raise UsageError("--strategy searches at one size: name one with --size.")
    tuning = strategy and SearchPlan(
        strategy=Strategy(strategy), trials=trials, seed=seed, objective=objective, size=size
    )
    if tuning:
        grid = service.plan_space(loaded, words[0], words[1:], baseline or (), every=True)
        tune.metric_of(objective)
    else:
        grid = service.plan(loaded, words[0], words[1:], baseline or ())
    mapped = service.parse_map(list(grid.swept), by) if by else None
    if dry_run and tuning:
        planned = sweep_parts.planned(grid, trials, tuning.strategy.value)
        output("sweep-plan", service.PlannedSweep(sweep=grid), planned, json)
        return
    if dry_run:
        refused = service.refusals(loaded, grid, parse_limits(limit))
        budget_s = parse_seconds(budget, "--budget") if budget else BUDGET_S
        names = split_sizes(size)
        timing = service.estimate(loaded, grid, len(refused), budget_s, len(names))
        values = service.PlannedSweep(sweep=grid, sizes=names, refused=refused, timing=timing)
        output("sweep-plan", values, report.planned(grid, names, refused, timing), json)
        return
    settings = RunSettings(
        measuring=parse_measuring(
            gpu,
            limit,
            margin=margin,
            size=size,
            budget=budget,
            default_budget_s=None if tuning else BUDGET_S,
            peers=False,
            shared_gpu=shared_gpu,
        ),
        keep=not no_record,
    )
    with common.session(
        loaded, nvcc, limit, emulate=emulate, device=device, devices=devices, scheduler=scheduler
    ) as session:
        if tuning:
            outcome = tune.run(loaded, grid, tuning, session, settings)
        else:
            grid = _in_order(order, loaded, grid, session, size, budget)
            outcome = service.run(loaded, grid, session, settings)
    if not no_record:
        common.refresh_log(loaded)
    _print(outcome, loaded.root, mapped, verbose, json, csv)
    for path in dispatch or ():
        table.write(outcome.record, path)
        print_message(f"wrote {path}")
    raise typer.Exit(service.exit_code(outcome))


def _refuse_order(order: VariantOrder, strategy: StrategyName | None) -> None:
    if strategy and order is VariantOrder.modelled:
        raise UsageError("--order goes without --strategy, which chooses what it tries next.")


def _in_order(
    order: VariantOrder,
    loaded: Project,
    grid: Grid,
    session: Session,
    size: str,
    budget: str | None,
) -> Grid:
    """The grid in the order that was asked for, and what there is to say of it."""
    from kernelexp.services.run import modelled_order
    from kernelexp.services.run import sweep as service

    if order is VariantOrder.grid:
        return grid
    ordered = modelled_order.order(loaded, grid, session, size, prune=budget is not None)
    for sentence in ordered.sentences:
        print_message(sentence)
    return service.require_candidates(ordered.grid)


def _print(
    outcome: Concluded,
    root: Path,
    mapped: tuple[str, str] | None,
    verbose: bool,
    json: bool,
    csv: bool,
) -> None:
    import msgspec

    from kernelexp.judge import sweeps
    from kernelexp.model.experiment import spell_point
    from kernelexp.report import export
    from kernelexp.report.runs import sweep as report

    for variant, fault in outcome.faults:
        print_message(f"error: {spell_point(variant.axes)}: {fault}")
    if outcome.unkept:
        print_message(f"error: this sweep has no record: {outcome.unkept}.")
    record = outcome.record
    path = outcome.path
    if csv:
        print_text(export.sweep(record))
    else:
        values = msgspec.structs.replace(sweeps.examine(record), path=path and str(path))
        shown = path.relative_to(root).as_posix() if path else ""
        output("sweep", values, report.render(record, mapped, shown, verbose), json)
