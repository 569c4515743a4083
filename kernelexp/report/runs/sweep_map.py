"""Two axes of a sweep as a map: the best over the other axes, for terminals and as a chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import msgspec

from kernelexp.facts import metrics
from kernelexp.judge import sweeps
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import spell
from kernelexp.model.record import Record, swept_axes
from kernelexp.report.charts.chart import HeatMap, Tile
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, Style, paragraph, table
from kernelexp.report.runs import sweep_parts

# Up to which excess over the best, and what stands for it.
_SHADES: tuple[tuple[float, str, Style], ...] = (
    (0.10, "▒", ""),
    (1.00, "▓", "warn"),
    (float("inf"), "█", "bad"),
)
_BEST, _REFUSED = "░", "x"
# Columns with a figure each that fit next to the labels; more have the glyph alone.
_COLUMNS = 5


class MappedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The figure that a map shows."""

    title: str
    values: dict[str, float]
    """Of each arm that has one, the others were refused; less is better."""
    texts: dict[str, str]
    """As the table of the sweep has them."""


def document(record: Record, axes: tuple[str, str]) -> Iterator[Block]:
    """The map of these axes (down, across) in glyphs that need no colour."""
    shown = _figure(record)
    if shown.values:
        yield paragraph(Span(shown.title, "strong"))
        yield from render(record.by_name, shown, axes, record.margin)


def charts(record: Record, by: tuple[str, str] | None = None) -> Iterator[HeatMap]:
    """The map of the axes `by` (down, across), or one for each pair of the swept axes."""
    shown, reference = _figure(record), record.names[0]
    if not shown.values:
        return
    is_known = reference in shown.values
    unit = shown.values[reference] if is_known else min(shown.values.values())

    def tile(name: str | None) -> Tile | None:
        if not name:
            return None if name is None else Tile(value=None, text="refused")
        return Tile(value=shown.values[name] / unit - 1.0, text=shown.texts[name])

    for down, across in [by] if by else combinations(swept_axes(record), 2):
        columns, rows = _grid(record.by_name, shown, (down, across))
        yield HeatMap(
            title=f"{record.kernel}, {record.arch}: {shown.title.lower()} by {down} and {across}",
            across=across,
            down=down,
            columns=columns,
            rows=tuple(rows),
            tiles=tuple(tuple(map(tile, names)) for names in rows.values()),
            note="Each cell shows the best variant with these two values, shaded darker where it "
            f"is over 1, 3, 10, 30 and 100% above {'the baseline' if is_known else 'the best'}.",
        )


def _figure(record: Record) -> MappedFigure:
    """Changes of the time, the figure that a search went by, or registers where nothing was
    timed."""
    arms = record.by_name
    effects = {name: arm.effect for name, arm in arms.items() if arm.measured}
    if effects:
        return MappedFigure(
            title=f"Change of {figures.compared(record.arms)}",
            values={name: own.ratio if own else 1.0 for name, own in effects.items()},
            texts={name: sweep_parts.change(own) or "base" for name, own in effects.items()},
        )
    metric = sweep_parts.metric_of(record)
    values = sweeps.objective(record) if metric else {}
    if metric is None:
        metric = metrics.METRICS["launch__registers_per_thread"]
        built = {name: arm for name, arm in arms.items() if arm.is_built and not arm.refused}
        values = {name: float(metrics.summarize(arm)["registers"]) for name, arm in built.items()}
    # Figures that reach 0 have no ratios.
    possible = values if min(values.values(), default=0.0) > 0.0 else {}
    own = {name: metric.read(arms[name]) for name in possible}
    texts = {name: figures.value(possible[name] if x is None else x) for name, x in own.items()}
    title = metric.label[0].upper() + metric.label[1:]
    return MappedFigure(title=title, values=possible, texts=texts)


def render(
    arms: Mapping[str, Arm], shown: MappedFigure, axes: tuple[str, str], margin: float
) -> Iterator[Block]:
    """`axes` go down, and across."""
    columns, rows = _grid(arms, shown, axes)
    shades = ((margin, _BEST, "good"), *_SHADES)
    best = min(shown.values.values())

    def cell(name: str | None) -> Cell:
        if not name:
            return "" if name is None else Span(_REFUSED, "dim")
        over = shown.values[name] / best - 1.0 if best else 0.0
        glyph, style = next((glyph, style) for most, glyph, style in shades if over <= most)
        return Span(glyph if len(columns) > _COLUMNS else f"{glyph} {shown.texts[name]}", style)

    header = (" \\ ".join(axes), *columns)
    cells = ((Span(row, "strong"), *map(cell, names)) for row, names in rows.items())
    yield table(header, cells, numbers=range(1, len(header)))
    yield paragraph(
        f"{_BEST} within {100 * margin:g}% of the best, ▒ within 10%, ▓ within 2x, █ beyond, "
        f"{_REFUSED} refused; each cell shows the best variant with these two values.",
        style="dim",
    )


def _grid(
    arms: Mapping[str, Arm], shown: MappedFigure, axes: tuple[str, str]
) -> tuple[tuple[str, ...], dict[str, list[str | None]]]:
    """The values across, and by each value down the names of the arms with the lowest figure:
    empty where all were refused, None where there is none."""
    down, across = axes
    columns, rows = (_values(arms.values(), axis) for axis in (across, down))
    here: dict[tuple[str, str], list[str]] = {}
    for name, arm in arms.items():
        here.setdefault((spell(arm.axes[down]), spell(arm.axes[across])), []).append(name)

    def best(row: str, column: str) -> str | None:
        known = [name for name in here.get((row, column), ()) if name in shown.values]
        if known:
            return min(known, key=lambda name: shown.values[name])
        return "" if (row, column) in here else None

    return columns, {row: [best(row, column) for column in columns] for row in rows}


def _values(arms: Iterable[Arm], axis: str) -> tuple[str, ...]:
    """Numbers in their order, words in that of the sweep."""
    values = {spell(arm.axes[axis]): arm.axes[axis] for arm in arms}
    numbers = {text: item for text, item in values.items() if isinstance(item, int)}
    whole = len(numbers) == len(values)
    return tuple(sorted(numbers, key=lambda text: numbers[text]) if whole else values)
