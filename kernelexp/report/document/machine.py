"""Facts about a machine, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.report.document.document import Block, Span, table
from kernelexp.services.doctor import Fact


def render(facts: Sequence[Fact]) -> Iterator[Block]:
    rows = (
        (Span(fact.name, "strong"), fact.found or Span("missing", "warn"), fact.allows)
        for fact in facts
    )
    yield table(("", "found", "for"), rows)
