"""Outcomes of runs, as `run` and `time` print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelexp.cli import common
from kernelexp.cli.console import output, print_message

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.report.document.document import Block
    from kernelexp.services.run.runs import Outcome


def show(project: Project, outcomes: list[Outcome], verbose: bool, json: bool) -> None:
    """The page of each run, and a summary where there are several."""
    from kernelexp.report.document.document import paragraph
    from kernelexp.report.runs import page, ran
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
    output("run", ran.to_values(outcomes), pages, json)
