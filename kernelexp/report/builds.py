"""What the compiler made of variants, a row each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelexp.model import Arm, Verdict
from kernelexp.report import figures, page
from kernelexp.report.tables import STYLES

_HEADER = ("Variant", "Regs", "Spills", "Stack", "Shared", "CTAs/SM", "SASS")


def render(rows: Mapping[str, tuple[Arm, Verdict | None]]) -> Iterator[RenderableType]:
    """The variants by label, sizes in bytes; below them, why some of them have no build."""
    table = Table(*_HEADER, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    for label, (arm, refused) in rows.items():
        if arm.build:
            used = arm.build.resources
            figures_ = (
                used.registers,
                used.spill_store_bytes + used.spill_load_bytes,
                used.stack_bytes,
                used.static_smem_bytes + used.dynamic_smem_bytes,
                arm.build.occupancy.ctas_per_sm,
                used.sass_bytes,
            )
            table.add_row(Text(label), *map(figures.count, figures_))
        elif refused:
            table.add_row(Text(label), Text(refused.status, style=STYLES[refused.status]))
    yield table
    for label, (arm, refused) in rows.items():
        yield from page.warnings(label, arm)
        if refused:
            yield Text(f"{label}: {refused.status}. {refused.sentence}")
            if arm.build_log:
                yield Text(page.shorten(arm.build_log))
