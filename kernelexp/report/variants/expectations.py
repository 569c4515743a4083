"""Expectations and their outcomes as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelexp.facts import counters, metrics
from kernelexp.judge.expectations import Judged
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, Style, paragraph, table

_NAME_MAX = 30  # longer names are folded, so that a row fits 80 columns
_STYLES: dict[str, Style] = {"met": "good", "missed": "bad", "not measured": "info"}


def render(judged: Mapping[str, Sequence[Judged]]) -> Iterator[Block]:
    """A row per expectation, candidates in their order; nothing where nothing was expected."""
    several = len(judged) > 1
    every = [(name, one) for name, own in judged.items() for one in own]
    if not every:
        return
    header = ("", "expected of", "", "kind", "came out", "")
    rows = ((Span(name, "strong"), *_row(one)) for name, one in every)
    longest = max(len(label(one.metric)) for _, one in every)
    whole = (0, 2, 3, 5) if longest > _NAME_MAX else (0, 1, 2, 3, 5)
    yield table(header, rows, unwrapped=whole, shown=range(0 if several else 1, 6))
    for name, one in every:
        if one.sentence:
            whose = f"{name}, " if several else ""
            yield paragraph(f"{whose}{label(one.metric)} {one.result}: {one.sentence}.")


def _row(judged: Judged) -> tuple[Cell, ...]:
    return (
        label(judged.metric),
        judged.expected,
        judged.kind or "",
        came_out(judged),
        Span(judged.result, _STYLES[judged.result]),
    )


def label(metric: str) -> str:
    """Returns a metric's label in the other tables of a page; the name itself where it has none."""
    known = metrics.find(metric)
    if known is None:
        return counters.describe(metric).label
    own = known.label.strip()
    return own if not known.unit or known.unit in own else f"{own}, {known.unit}"


def came_out(judged: Judged) -> str:
    """Both values, and the change where it is relative."""
    if judged.after is None:
        return figures.NONE
    words = f"{figures.value(judged.before)} → {figures.value(judged.after)}"
    if judged.change and judged.before != judged.after:
        words += f" ({100 * judged.change:+.2f}%)"
    return words
