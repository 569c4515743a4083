"""Maps of a sweep: for each pair of values of two axes, the best over the other axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from kernelexp.judge import sweeps
from kernelexp.model.record import Record
from kernelexp.report.charts.chart import HeatMap, Tile
from kernelexp.report.document import heatmap
from kernelexp.report.runs.sweep import mapped


def maps(record: Record, by: tuple[str, str] | None = None) -> Iterator[HeatMap]:
    """The map of the axes `by` (down, across), or one for each pair of the swept axes."""
    for down, across in [by] if by else combinations(sweeps.swept_axes(record), 2):
        yield from _map(record, down, across)


def _map(record: Record, down: str, across: str) -> Iterator[HeatMap]:
    arms = record.by_name
    shown = mapped(record)
    if not shown.values:
        return

    reference = shown.values.get(record.names[0], min(shown.values.values()))
    whose = "the baseline" if record.names[0] in shown.values else "the best"

    def tile(row: str, column: str) -> Tile | None:
        name = heatmap.lowest(arms, shown.values, {down: row, across: column})
        if not name:
            return None if name is None else Tile(value=None, text="refused")
        return Tile(value=shown.values[name] / reference - 1.0, text=shown.texts[name])

    columns, rows = (heatmap.values_of(record.arms, axis) for axis in (across, down))
    yield HeatMap(
        title=f"{record.kernel}, {record.arch}: {shown.title.lower()} by {down} and {across}",
        across=across,
        down=down,
        columns=columns,
        rows=rows,
        tiles=tuple(tuple(tile(row, column) for column in columns) for row in rows),
        note="Each cell shows the best variant with these two values, shaded darker where it is "
        f"over 1, 3, 10, 30 and 100% above {whose}.",
    )
