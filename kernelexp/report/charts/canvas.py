"""A plot of two logarithmic axes as characters: roofs as lines, marks as letters, ticks on both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.report.charts.chart import Mark, Plot
from kernelexp.report.document import figures

WIDTH, HEIGHT = 66, 16
"""Of the area inside the axes; with the ticks it is 78 columns wide."""
_MARGIN = 10
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class _Span(msgspec.Struct, frozen=True):
    """A mapping from values to character cells."""

    low: float
    high: float
    cells: int

    def at(self, value: float) -> int:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(share * (self.cells - 1))


def lettered(plot: Plot) -> list[tuple[str, Mark]]:
    """The marks that carry the message, the largest first, each with its letter."""
    marks = [mark for series in plot.series if series.look == "points" for mark in series.marks]
    ordered = sorted(marks, key=lambda mark: -mark.y)
    return [(_LETTERS[place % len(_LETTERS)], mark) for place, mark in enumerate(ordered)]


def draw(plot: Plot) -> str:
    """The plot in 80 columns; letters of one place stand side by side, the first at it."""
    marks = [mark for series in plot.series for mark in series.marks]
    across = _span([mark.x for mark in marks], WIDTH)
    up = _span([mark.y for mark in marks], HEIGHT)
    rows = [[" "] * WIDTH for _ in range(HEIGHT)]
    for series in plot.series:
        if series.look == "line":
            _line(rows, series.marks, across, up)
    for letter, mark in lettered(plot):
        row, cell = rows[HEIGHT - 1 - up.at(mark.y)], across.at(mark.x)
        if free := next((at for at in range(cell, WIDTH) if not row[at].isalnum()), None):
            row[free] = letter
    beneath = f"{plot.x.title:>{_MARGIN + WIDTH}}"
    return "\n".join((plot.y.title, *_framed(rows, across, up), beneath))


def _span(values: Sequence[float], cells: int) -> _Span:
    low, high = min(values), max(values)
    return _Span(low / 1.5, high * 1.2, cells)


def _line(rows: list[list[str]], marks: Sequence[Mark], across: _Span, up: _Span) -> None:
    """Straight between the marks, as both axes are logarithmic."""
    for one, other in itertools.pairwise(marks):
        begin, end = across.at(one.x), across.at(other.x)
        for cell in range(begin, end + 1):
            share = (cell - begin) / max(1, end - begin)
            row = HEIGHT - 1 - up.at(one.y * (other.y / one.y) ** share)
            rows[row][cell] = "─" if one.y == other.y else "·"


def _framed(rows: Sequence[Sequence[str]], across: _Span, up: _Span) -> Iterator[str]:
    ticks = {HEIGHT - 1 - up.at(value): figures.value(value) for value in _ticks(up)}
    for number, row in enumerate(rows):
        edge = "┤" if number in ticks else "│"
        yield f"{ticks.get(number, ''):>{_MARGIN - 2}} {edge}{''.join(row)}".rstrip()
    axis, labels = ["─"] * WIDTH, [" "] * (WIDTH + _MARGIN)
    for value in _ticks(across):
        cell, text = across.at(value), figures.value(value)
        axis[cell] = "┬"
        start = min(cell, WIDTH - len(text))
        labels[start : start + len(text)] = text
    yield f"{'':{_MARGIN - 1}}└{''.join(axis)}"
    yield f"{'':{_MARGIN}}{''.join(labels)}".rstrip()


def _ticks(span: _Span) -> Iterator[float]:
    """1, 2 and 5 of each power of ten, as many as leave room for their labels."""
    digits = (1, 2, 5) if math.log10(span.high / span.low) < 2.5 else (1,)
    for power in range(math.floor(math.log10(span.low)), math.ceil(math.log10(span.high)) + 1):
        for digit in digits:
            if span.low <= (value := digit * 10.0**power) <= span.high:
                yield value
