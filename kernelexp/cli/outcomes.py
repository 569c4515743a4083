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

    for each in outcomes:
        if each.error:
            print_message(f"error: {each.experiment}: {each.error}")
    common.warn(project.root, (skipped for each in outcomes for skipped in each.unreadable))
    pages: list[Block] = []
    for each in outcomes:
        if each.record:
            if pages:
                pages.append(paragraph(""))
            path = each.path.relative_to(project.root).as_posix() if each.path else ""
            pages += page.render(each.record, each.earlier, path, verbose)
    if len(outcomes) > 1:
        failures = {each.experiment: str(each.error) for each in outcomes if each.error}
        pages += page.summary([each.record for each in outcomes if each.record], failures)
    output("run", ran.to_values(outcomes), pages, json)
