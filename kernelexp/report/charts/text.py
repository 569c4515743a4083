"""Charts as documents: figures in tables, with glyphs that place them along a scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kernelexp.report.charts import canvas
from kernelexp.report.charts.chart import Bars, Chart, ChartAxis, HeatMap, Mark, Plot
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Listing, Span, filled, paragraph, table

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
    yield Listing(canvas.draw(plot))
    for series in plot.series:
        if series.look == "line":
            yield paragraph(f"─ {series.name}", indent=2)
    rows = (
        (letter, _figure(mark.y), _figure(mark.x), mark.label)
        for letter, mark in canvas.lettered(plot)
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
