"""Parameters of the model of time, beside what a card's microbenchmarks make of them."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.report.document.document import Block, Heading, paragraph, table
from kernelexp.services.refitting import ModelRefit
from warpsim.timing.refit import Refitted


def render(result: ModelRefit) -> Iterator[Block]:
    yield Heading(f"Parameters of an {result.chip} in the model of time")
    rows = [
        (item.name, f"{item.value:.4g}", f"{item.refitted:.4g}", _change(item), item.unit)
        for item in result.parameters
    ]
    yield table(("parameter", "is", "refitted", "change", "unit"), rows, numbers=(1, 2, 3))
    yield paragraph(
        f"As they are: {', '.join(result.kept)}, which are published, inferred, or fitted to "
        "several figures.",
        style="dim",
    )


def _change(item: Refitted) -> str:
    """Spells a parameter's change: in percent, or in its unit where it was 0."""
    return f"{100 * item.change:+.1f}%" if item.value else f"{item.change:+.3g}"
