"""What each source line costs, and each role of the warps: `inspect --lines`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kernelexp.cli import common
from kernelexp.cli.arguments import parse_isas
from kernelexp.cli.console import output, print_message

if TYPE_CHECKING:
    from kernelexp.model.variant import Variant
    from kernelexp.project import Project


def show(
    loaded: Project,
    wanted: Sequence[Variant],
    nvcc: str | None,
    limit: list[str] | None,
    *,
    by: str | None,
    top: int,
    role: str | None,
    sass: bool,
    size: str,
    isa: str,
    json: bool,
    markdown: bool,
) -> None:
    """Executes these variants, and prints their lines ranked by a metric."""
    from kernelexp.dossier import emulations
    from kernelexp.report.variants import lines as report
    from kernelexp.report.variants import lines_values
    from kernelexp.services.lines import service

    with common.session(loaded, nvcc, limit) as session:
        costs, faults = service.look(loaded, wanted, session, size=size, isas=parse_isas(isa))
    for fault in faults:
        print_message(f"error: {fault}")
    values = lines_values.to_values(costs, by, top, role, sass) if json else None
    document = report.render(costs, by, top, role, sass, markdown=markdown)
    output("lines", values, document, json, markdown)
    raise typer.Exit(emulations.exit_code([cost.arm for cost in costs], faults))
