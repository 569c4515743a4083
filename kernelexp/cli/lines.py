"""Cost of each source line, and of each role of the warps: `inspect --lines`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kernelexp.cli import common
from kernelexp.cli.arguments import parse_isas
from kernelexp.cli.console import output, print_message
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.model.variant import Variant
    from kernelexp.project import Project
    from kernelexp.services.lines.service import Lines


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
    page: str,
    json: bool,
    markdown: bool,
) -> None:
    """Executes these variants, and prints their lines ranked by a metric."""
    from kernelexp.dossier import emulations
    from kernelexp.report.variants import lines as report
    from kernelexp.services.lines import costed, service

    with common.session(loaded, nvcc, limit) as session:
        costs, faults = service.look(loaded, wanted, session, size=size, isas=parse_isas(isa))
    for fault in faults:
        print_message(f"error: {fault}")
    if page:
        _write(page, loaded, costs)
    values = [costed.variant(cost, by, top, role, sass) for cost in costs] if json else None
    document = report.render(costs, by, top, role, sass, markdown=markdown)
    output("lines", values, document, json, markdown)
    raise typer.Exit(emulations.exit_code([cost.arm for cost in costs], faults))


def _write(page: str, loaded: Project, costs: Sequence[Lines]) -> None:
    from kernelexp.report.site import listing
    from kernelexp.services import modelling
    from kernelexp.system import wholefile

    built = [cost for cost in costs if cost.pieces]
    if not built:
        return
    names = [str(number) for number in range(1, len(built) + 1)] if len(built) > 1 else [""]
    listings = [
        listing.listed(loaded.root, name, cost, modelling.kept_run(loaded.root, cost.arm))
        for name, cost in zip(names, built, strict=True)
    ]
    title = " and ".join(cost.lines.label for cost in listings)
    try:
        wholefile.write(Path(page), listing.page(listings, title))
    except OSError as error:
        raise UsageError(f"--page {page} can't be written: {error.strerror}.") from None
    print_message(f"wrote {page}")
