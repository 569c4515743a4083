"""Charts as documents: figures in tables, with glyphs that place them along a scale; plots of two
logarithmic axes drawn with characters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.report.charts.chart import Bars, Chart, ChartAxis, HeatMap, Mark, Plot
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Listing, Span, filled, paragraph, table

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


_WIDTH, _LEAST = 28, 12
_COLUMNS, _GAP = 78, 3
_GLYPHS = "█░▓▒"


def render(charts: Sequence[Chart]) -> Iterator[Block]:
    """Each chart with its title and its note."""
    for chart in charts:
        yield paragraph(Span(chart.title, "strong"))
        match chart:
            case Plot():
                yield from _plot(chart)
            case HeatMap():
                yield _heat(chart)
            case Bars():
                yield from _bars(chart)
        if chart.note:
            yield paragraph(chart.note, style="dim")


def _plot(plot: Plot) -> Iterator[Block]:
    """The series that carry the message; a line's ends are in its name."""
    if plot.x.log and plot.y.log:
        yield from _both_log(plot)
        return
    for series in plot.series:
        if series.look == "line":
            yield paragraph(series.name, indent=2)
    shown = [item for item in plot.series if item.look == "points"]
    if plot.x.ordered and len(shown) > 1:
        for series in shown:
            yield paragraph(series.name, indent=2)
            yield _points(plot, series.marks)
    else:
        yield _points(plot, [mark for item in shown for mark in item.marks])
    for band in plot.bands:
        unit = "%" if plot.y.unit == "%" else f" {plot.y.unit}".rstrip()
        ends = f"{_figure(band.low)}{unit} to {_figure(band.high)}{unit}"
        yield paragraph(f"{band.name}: {ends}", indent=2)


def _both_log(plot: Plot) -> Iterator[Block]:
    """Drawn on both axes; below it what its letters stand for."""
    yield Listing(draw(plot))
    for series in plot.series:
        if series.look == "line":
            yield paragraph(f"─ {series.name}", indent=2)
    rows = (
        (letter, _figure(mark.y), _figure(mark.x), mark.label) for letter, mark in lettered(plot)
    )
    yield table(("", plot.y.unit, plot.x.unit, "variant"), rows, numbers=(1, 2), unwrapped=(0,))


def _points(plot: Plot, marks: Sequence[Mark]) -> Block:
    ends = [end for mark in marks for end in (mark.y, mark.low, mark.high) if end is not None]
    rows: list[list[str]] = []
    for mark in marks:
        interval = ""
        if mark.low is not None and mark.high is not None:
            interval = f"{_figure(mark.low)} to {_figure(mark.high)}"
        rows.append([_name(plot.x, mark), _figure(mark.y), interval])
    header = (plot.x.title if plot.x.categories else "", plot.y.title, "interval", "")
    width = _left([header[:3], *rows])
    for row, mark in zip(rows, marks, strict=True):
        row.append(_dots(mark, min(ends), max(ends), plot.y.log, width))
    first = (0,) if max(len(row[0]) for row in rows) < 30 else ()
    shown = filled(rows)
    return table(header, rows, (1, 2), (*first, shown[-1]), shown)


def _left(rows: Sequence[Sequence[str]]) -> int:
    """Returns the columns of 80 that these cells leave for the drawing beside them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return max(_LEAST, min(_WIDTH, _COLUMNS - sum(width + _GAP for width in widths)))


def _name(axis: ChartAxis, mark: Mark) -> str:
    if axis.categories:
        return axis.categories[int(mark.x)]
    return mark.label


def _dots(mark: Mark, least: float, most: float, log: bool, width: int) -> str:
    """The interval and the mark between the least and the largest of all: `├──●─┤`."""

    def place(value: float) -> int:
        low, high, at = (math.log(item) if log else item for item in (least, most, value))
        return round((at - low) / (high - low) * (width - 1)) if high > low else 0

    glyphs = [" "] * width
    if mark.low is not None and mark.high is not None and place(mark.low) < place(mark.high):
        glyphs[place(mark.low) : place(mark.high) + 1] = "─" * (
            place(mark.high) - place(mark.low) + 1
        )
        glyphs[place(mark.low)], glyphs[place(mark.high)] = "├", "┤"
    glyphs[place(mark.y)] = "●"
    return "".join(glyphs).rstrip()


def _figure(value: float) -> str:
    return figures.value(float(value))


def _heat(heat: HeatMap) -> Block:
    header = (f"{heat.down} \\ {heat.across}", *heat.columns)
    rows: list[list[Cell]] = [
        [Span(name, "strong"), *(tile.text if tile else "" for tile in tiles)]
        for name, tiles in zip(heat.rows, heat.tiles, strict=True)
    ]
    return table(header, rows, numbers=range(1, len(header)))


def _bars(bars: Bars) -> Iterator[Block]:
    """A line per bar; names may be long, so that a glyph stands for each."""
    glyphs = [_GLYPHS[number % len(_GLYPHS)] for number in range(len(bars.names))]
    for glyph, name in zip(glyphs, bars.names, strict=True):
        yield paragraph(f"{glyph} {name}", indent=2)
    most = bars.most
    rows: list[list[str]] = []
    for label, values in bars.groups:
        for number, (glyph, value) in enumerate(zip(glyphs, values, strict=True)):
            figure = figures.NONE if value is None else _figure(value)
            length = round((value or 0.0) / most * _WIDTH)
            rows.append(["" if number else label, figure, glyph * length])
    yield table(("", bars.unit, ""), rows, numbers=(1,), unwrapped=(0, 2))
