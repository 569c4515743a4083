"""Options that run, time and sweep share, as what they measure by; the pages of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelexp.cli import common, options
from kernelexp.cli.arguments import parse_limits, parse_seconds
from kernelexp.cli.console import output, print_message

if TYPE_CHECKING:
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.project import Project
    from kernelexp.report.document.document import Block
    from kernelexp.services.run.runs import Outcome


def parse_measuring(
    gpu: bool,
    limit: list[str] | None,
    *,
    margin: float,
    size: str,
    budget: str | None,
    default_budget_s: float | None = None,
    processes: int = 4,
    l2: options.L2State = options.L2State.cold,
    peers: bool,
    shared_gpu: bool,
    sanitize: bool = False,
) -> Measuring | None:
    """Parses --margin, --size, --budget and the like; None with --no-gpu."""
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.model.measurement import Options

    limits = parse_limits(limit)
    options = Options(
        processes=processes,
        l2=l2.value,
        peers=peers,
        shared_gpu=shared_gpu,
        sanitize=sanitize,
        problem_timeout_s=limits.problem_s,
    )
    budget_s = parse_seconds(budget, "--budget") if budget else default_budget_s
    if not gpu:
        return None
    return Measuring(options=options, margin=margin / 100, size=size, budget_s=budget_s)


def show(project: Project, outcomes: list[Outcome], verbose: bool, json: bool) -> None:
    """The page of each run, and a summary where there are several."""
    from kernelexp.report.document.document import paragraph
    from kernelexp.report.runs import page
    from kernelexp.services.run.runs import Concluded, FailedRun

    for outcome in outcomes:
        if isinstance(outcome, FailedRun):
            print_message(f"error: {outcome.experiment}: {outcome.error}")
        elif outcome.unkept:
            name = outcome.experiment
            print_message(f"error: {name} has no record of this run: {outcome.unkept}.")
    concluded = [outcome for outcome in outcomes if isinstance(outcome, Concluded)]
    common.warn(project.root, (skipped for one in concluded for skipped in one.unreadable))
    pages: list[Block] = []
    summed_up = {size.run for one in concluded for size in one.record.sizes[:-1]}
    for outcome in concluded:
        if outcome.record.run in summed_up and not verbose:
            continue  # the page of the last size shows all
        if pages:
            pages.append(paragraph(""))
        path = outcome.path.relative_to(project.root).as_posix() if outcome.path else ""
        pages += page.render(outcome.record, outcome.earlier, path, verbose)
    if len(outcomes) - len(summed_up) > 1:
        failures = {
            one.experiment: str(one.error) for one in outcomes if isinstance(one, FailedRun)
        }
        pages += page.summary(
            [one.record for one in concluded if one.record.run not in summed_up], failures
        )
    output("run", [outcome.ran for outcome in outcomes], pages, json)
