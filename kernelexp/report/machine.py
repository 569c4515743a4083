"""What a machine has, one row per fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.doctor import Fact
from kernelexp.report.document import Block, Span, table


def render(facts: Sequence[Fact]) -> Iterator[Block]:
    yield table(
        ("", "found", "for"),
        (
            (
                Span(fact.name, "strong"),
                fact.found or Span("missing", "warn"),
                fact.allows,
            )
            for fact in facts
        ),
    )
