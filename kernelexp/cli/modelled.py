"""What the model of time says of variants: `inspect --modelled`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kernelexp.cli import common
from kernelexp.cli.console import output, print_message
from kernelexp.model.errors import OK

if TYPE_CHECKING:
    from kernelexp.model.variant import Variant
    from kernelexp.project import Project


def show(
    loaded: Project,
    wanted: Sequence[Variant],
    nvcc: str | None,
    limit: list[str] | None,
    *,
    top: int,
    size: str,
    json: bool,
    markdown: bool,
) -> None:
    """Models these variants, and prints their times against the first one's."""
    from kernelexp.report.variants import modelled as report
    from kernelexp.services import modelling

    with common.session(loaded, nvcc, limit) as session:
        found, faults = modelling.look(loaded, wanted, session, size)
    for fault in faults:
        print_message(f"error: {fault}")
    if found:
        values = report.to_values(found, top) if json else None
        output("modelled", values, report.render(found, top), json, markdown)
    raise typer.Exit(next((fault.exit_code for fault in faults), OK))
