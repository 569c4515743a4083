"""Charts as plain data: plots of marks with intervals, maps over two axes, grouped bars.

Figures are unrounded, in the unit that the axis names. Texts are plain: renderers escape them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec


class ChartAxis(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of a plot."""

    label: str
    unit: str = ""
    categories: tuple[str, ...] = ()
    """Names of the positions 0, 1, ...; empty for an axis of numbers."""
    ordered: bool = False
    """Whether each category follows the one before, so that a line leads from mark to mark."""
    log: bool = False

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One point; `low` and `high` are the ends of an interval of y."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""
    beside: str = ""
    """What is written at the point, where there are few."""


Look: TypeAlias = Literal["dots", "points", "line"]
"""`dots` are many small marks, `points` a few that carry the message."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Marks of one meaning; each series has a shape and a shade of its own."""

    name: str
    marks: tuple[Mark, ...]
    look: Look = "points"


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A range of y that marks are compared with."""

    name: str
    low: float
    high: float


class Plot(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Marks over two axes."""

    title: str
    x: ChartAxis
    y: ChartAxis
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    note: str = ""
    """What is to be known when it is read: where the figures are from, what an interval is."""


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a map."""

    value: float | None
    """How far above the baseline, as a fraction; None where the variant was refused."""
    text: str


class HeatMap(msgspec.Struct, frozen=True, kw_only=True, tag="Heat"):
    """A figure over two axes of a sweep; less is better."""

    title: str
    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    tiles: tuple[tuple[Tile | None, ...], ...]
    """By row, then column; None where there is no such variant."""
    note: str = ""


class Bars(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Figures of several subjects, bar next to bar; absent ones are None."""

    title: str
    unit: str
    names: tuple[str, ...]
    groups: tuple[tuple[str, tuple[float | None, ...]], ...]
    note: str = ""

    @property
    def most(self) -> float:
        """The figure of a bar of full length: 100 of percentages, the largest of others."""
        figures = [value for _, values in self.groups for value in values if value]
        return max((*figures, 100.0) if self.unit == "%" else figures, default=1.0)


Chart: TypeAlias = Plot | HeatMap | Bars
