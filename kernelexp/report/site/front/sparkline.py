"""A plot as a line a few words long: its course, and where it ends."""

from __future__ import annotations

import msgspec

from kernelexp.report.charts.chart import Plot
from kernelexp.report.document import figures

WIDTH, HEIGHT = 120, 28
_ROOM = 4


class Spark(msgspec.Struct, frozen=True, kw_only=True):
    """The line's path inside WIDTH x HEIGHT, its last point, and the same in words."""

    path: str
    last: tuple[float, float]
    words: str


def spark(plot: Plot | None) -> Spark | None:
    """Draws the first series; None where one mark or none makes no line."""
    marks = plot.series[0].marks if plot else ()
    if plot is None or len(marks) < 2:
        return None
    low, high = min(mark.y for mark in marks), max(mark.y for mark in marks)
    step, slope = (WIDTH - 2 * _ROOM) / (len(marks) - 1), (HEIGHT - 2 * _ROOM) / (high - low or 1)
    places = [
        (round(_ROOM + number * step, 1), round(HEIGHT - _ROOM - (mark.y - low) * slope, 1))
        for number, mark in enumerate(marks)
    ]
    ends = [float(marks[at].y) for at in (0, -1)]
    first, last = map(figures.time_ms if plot.y.unit == "ms" else figures.value, ends)
    return Spark(
        path="M" + "L".join(f"{x} {y}" for x, y in places),
        last=places[-1],
        words=f"from {first} to {last} {plot.y.unit} in {len(marks)} steps",
    )
