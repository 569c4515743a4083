"""Modelled times of variants: `inspect --modelled`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kernelexp.cli import common
from kernelexp.cli.console import output, print_message
from kernelexp.model.errors import OK, UsageError

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
    trace: str,
    json: bool,
    markdown: bool,
) -> None:
    """Models these variants, and prints their times against the first one's."""
    from kernelexp.report.variants import modelled as report
    from kernelexp.services import modelling

    if trace and len(wanted) > 1:
        raise UsageError(f"--trace is of one variant, and these are {len(wanted)}: name one.")
    path = str(Path(trace).absolute()) if trace else ""
    with common.session(loaded, nvcc, limit) as session:
        result, faults = modelling.look(loaded, wanted, session, size, path)
    for fault in faults:
        print_message(f"error: {fault}")
    if trace and result and not result[0].modelled.refused:
        print_message(f"wrote {trace}: open it at https://ui.perfetto.dev")
    if result:
        shown = [report.shorten(variant, top) for variant in result] if json else None
        output("modelled", shown, report.render(result, top), json, markdown)
    raise typer.Exit(next((fault.exit_code for fault in faults), OK))
