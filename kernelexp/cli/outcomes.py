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

    for outcome in outcomes:
        if outcome.error:
            print_message(f"error: {outcome.experiment}: {outcome.error}")
    common.warn(project.root, (skipped for outcome in outcomes for skipped in outcome.unreadable))
    pages: list[Block] = []
    for outcome in outcomes:
        if outcome.record:
            if pages:
                pages.append(paragraph(""))
            path = outcome.path.relative_to(project.root).as_posix() if outcome.path else ""
            pages += page.render(outcome.record, outcome.earlier, path, verbose)
    if len(outcomes) > 1:
        failures = {outcome.experiment: str(outcome.error) for outcome in outcomes if outcome.error}
        pages += page.summary([outcome.record for outcome in outcomes if outcome.record], failures)
    output("run", ran.to_values(outcomes), pages, json)
