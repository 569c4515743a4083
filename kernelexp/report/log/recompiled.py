"""What the sources of records compile to, then and now, a line for each record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.report.document.document import Block, grouped, paragraph
from kernelexp.services.recompiling import Recompiled


def render(results: Sequence[Recompiled]) -> Iterator[Block]:
    """A line for each record, and one for each arm of it with other machine code."""
    if not results:
        yield paragraph("No record has other sources than the project has now.")
    for one in results:
        name = f"{one.experiment} {one.run}"
        if one.same:
            yield paragraph(f"{name}: the same machine code as recorded: {', '.join(one.same)}.")
        for why, arms in grouped((why, arm) for arm, why in one.differing.items()).items():
            yield paragraph(f"{name}, {', '.join(arms)}: {why}", style="warn")
