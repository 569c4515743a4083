"""Maps of a sweep: for each pair of two axes' values the best over the other axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from kernelexp.model.axes import spell
from kernelexp.model.record import Record
from kernelexp.report.charts.chart import HeatMap, Tile
from kernelexp.report.document.heatmap import spell_excess
from kernelexp.report.runs.sweep import mapped
from kernelexp.services.run import sweep


def maps(record: Record, by: tuple[str, str] | None = None) -> Iterator[HeatMap]:
    """The map of the axes `by` (down, across), or one for each pair of the swept axes."""
    for down, across in [by] if by else combinations(sweep.swept_axes(record), 2):
        yield from _map(record, down, across)


def _map(record: Record, down: str, across: str) -> Iterator[HeatMap]:
    arms = dict(zip(record.names, record.arms, strict=True))
    what, values = mapped(record)
    if not values:
        return
    best = min(values.values())
    places: dict[tuple[str, str], list[str]] = {}
    for name, arm in arms.items():
        places.setdefault((spell(arm.axes[down]), spell(arm.axes[across])), []).append(name)

    def tile(row: str, column: str) -> Tile | None:
        if (row, column) not in places:
            return None
        own = [values[name] for name in places[row, column] if name in values]
        if not own:
            return Tile(value=None, text="refused")
        excess = min(own) / best - 1.0 if best else 0.0
        return Tile(value=excess, text=spell_excess(excess))

    columns, rows = (_values(record, axis) for axis in (across, down))
    yield HeatMap(
        title=f"{record.kernel}, {record.arch}: {what.lower()} by {down} and {across}",
        across=across,
        down=down,
        columns=columns,
        rows=rows,
        tiles=tuple(tuple(tile(row, column) for column in columns) for row in rows),
        note="Excess over the best of all; each field is the best over the other axes.",
    )


def _values(record: Record, axis: str) -> tuple[str, ...]:
    """Numbers in their order, words in that of the sweep."""
    values = {spell(arm.axes[axis]): arm.axes[axis] for arm in record.arms}
    numbers = {text: each for text, each in values.items() if isinstance(each, int)}
    whole = len(numbers) == len(values)
    return tuple(sorted(numbers, key=lambda text: numbers[text]) if whole else values)
