"""Which lanes touch which banks and sectors: `inspect --memory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kernelexp.cli import common
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
    top: int,
    size: str,
    json: bool,
    markdown: bool,
) -> None:
    """Executes these variants, and draws their accesses that cost more than they need."""
    from kernelexp.dossier import emulations
    from kernelexp.report.variants import memory_picture as report
    from kernelexp.services import memory_pictures

    with common.session(loaded, nvcc, limit) as session:
        pictures, faults = memory_pictures.look(loaded, wanted, session, size)
    for fault in faults:
        print_message(f"error: {fault}")
    output(
        "memory",
        [picture.pictured for picture in pictures],
        report.render(pictures, top),
        json,
        markdown,
    )
    raise typer.Exit(emulations.exit_code([picture.arm for picture in pictures], faults))
