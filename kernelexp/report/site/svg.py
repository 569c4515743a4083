"""A plot as the shapes of an inline SVG: positions only, for the template that writes them.

Ten thousand of these take seconds; colours are the page's, so
that they follow light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kernelexp.report.charts.chart import ChartAxis, Mark, Plot, Series
from kernelexp.report.document import figures

WIDTH, HEIGHT = 720.0, 320.0
_LEFT, _RIGHT, _TOP = 64.0, 12.0, 12.0
_BOTTOM, _BOTTOM_TILTED = 44.0, 76.0
NARROW = 360.0
"""Of a phone's screen: a wide drawing made smaller could not be read there."""
_WORDS = 10.0
"""Above the highest point, for what is written there."""
_LEVEL = 90
"""Pixels that a category needs for its name to stand level."""
_TILTED = 30
_SHAPES = (
    "M{0} {1}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M{0} {1}m-4 -4h8v8h-8z",
    "M{0} {1}m0 -5l5 9h-10z",
    "M{0} {1}m0 -5l5 5l-5 5l-5 -5z",
)


class Tick(msgspec.Struct, frozen=True):
    """A position on an axis, in pixels, and what is written there."""

    at: float
    text: str


class SvgShape(msgspec.Struct, frozen=True, kw_only=True):
    """A path of the series `number`; `title` is what a pointer over it shows."""

    path: str
    number: int
    look: str
    title: str = ""
    category: str = ""
    """That of the x axis where a point stands."""


class Stripe(msgspec.Struct, frozen=True, kw_only=True):
    """A band, from the top, in pixels."""

    top: float
    height: float
    number: int


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """The look of a series, drawn about the middle of a square, and its name."""

    name: str
    path: str
    number: int
    look: str


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """A plot's shapes inside `width` x `height`."""

    plot: Plot
    left: float = _LEFT
    right: float
    top: float = _TOP
    bottom: float
    tilted: bool
    width: float
    height: float = HEIGHT
    across: tuple[Tick, ...]
    upwards: tuple[Tick, ...]
    stripes: tuple[Stripe, ...]
    shapes: tuple[SvgShape, ...]
    words: tuple[tuple[float, float, str], ...]
    """What is written at points: the middle of its foot."""
    keys: tuple[Key, ...]
    """None where there is one series, which the title names."""


class _Scale(msgspec.Struct, frozen=True, kw_only=True):
    """A mapping from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        return round(self.all((value,))[0], 1)

    def all(self, values: Iterable[float]) -> list[float]:
        """The places of many values: there are hundreds of dots on hundreds of pages."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log10(low), math.log10(high)
            values = map(math.log10, values)
        start, slope = self.start, (self.end - self.start) / (high - low)
        return [start + (value - low) * slope for value in values]


def draw(plot: Plot, width: float = WIDTH) -> Drawing:
    """The plot's shapes; it has at least one mark."""
    right = width - _RIGHT
    marks = [mark for series in plot.series for mark in series.marks]
    x = _scale(plot.x, [mark.x for mark in marks], _LEFT, right)
    ends = [item for mark in marks for item in (mark.y, mark.low, mark.high) if item is not None]
    ends += [end for band in plot.bands for end in (band.low, band.high)]
    tilted = len(plot.x.categories) * _LEVEL > right - _LEFT
    bottom = HEIGHT - (_BOTTOM_TILTED if tilted else _BOTTOM)
    written = any(mark.beside for mark in marks)
    y = _scale(plot.y, ends, bottom, _TOP + (_WORDS if written else 0.0))
    return Drawing(
        plot=plot,
        right=right,
        width=width,
        bottom=bottom,
        tilted=tilted,
        across=tuple(_ticks(plot.x, x)),
        upwards=tuple(_ticks(plot.y, y)),
        stripes=tuple(
            Stripe(top=y.at(band.high), height=round(y.at(band.low) - y.at(band.high), 1), number=n)
            for n, band in enumerate(plot.bands)
        ),
        shapes=tuple(_shapes(plot, x, y)),
        words=tuple(
            (x.at(one.x), round(y.at(one.y if one.high is None else one.high) - 7, 1), one.beside)
            for one in marks
            if one.beside
        ),
        keys=tuple(_keys(plot.series)) if len(plot.series) > 1 else (),
    )


def _keys(series: Sequence[Series]) -> Iterator[Key]:
    for number, item in enumerate(series):
        path = {"line": "M-7 0H7", "dots": "M0 0h0"}.get(item.look) or _shape(number, 0, 0)
        look = "point" if item.look == "points" else item.look
        yield Key(name=item.name, path=path, number=number, look=look)


def _shape(number: int, across: float, up: float) -> str:
    """Returns a shape; shapes do not begin anew where colours do: no two of the first 16 are
    alike."""
    return _SHAPES[(number + number // len(_SHAPES)) % len(_SHAPES)].format(across, up)


def _scale(axis: ChartAxis, values: list[float], start: float, end: float) -> _Scale:
    """The range of the values with some room around it."""
    if axis.categories:
        low, high = -0.5, len(axis.categories) - 0.5
    elif axis.log:
        low, high = min(values) / 1.2, max(values) * 1.2
    else:
        room = 0.05 * (max(values) - min(values)) or abs(values[0]) or 1.0
        low, high = min(values) - room, max(values) + room
    return _Scale(low=low, high=high, start=start, end=end, log=axis.log)


def _ticks(axis: ChartAxis, scale: _Scale) -> Iterator[Tick]:
    if axis.categories:
        room = scale.end - scale.start + _LEFT + _RIGHT
        step = math.ceil(len(axis.categories) * _TILTED / room)
        for place in range(0, len(axis.categories), step):
            yield Tick(scale.at(place), axis.categories[place])
        return
    for value in _steps_log(scale) if axis.log else steps(scale.low, scale.high):
        yield Tick(scale.at(value), figures.value(float(value)))


def steps(low: float, high: float) -> Iterator[float]:
    """Round numbers, four to eight of them."""
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    size *= next(item for item in (5, 2, 1) if item == 1 or (high - low) / (size * item) >= 4)
    for number in range(math.ceil(low / size), math.floor(high / size) + 1):
        yield round(number * size, 12)


def _steps_log(scale: _Scale) -> Iterator[float]:
    for power in range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1):
        for digit in (1, 2, 5):
            if scale.low <= (value := digit * 10.0**power) <= scale.high:
                yield value


def _shapes(plot: Plot, x: _Scale, y: _Scale) -> Iterator[SvgShape]:
    for number, series in enumerate(plot.series):
        if series.look == "points":
            if plot.x.ordered:
                yield _trail(series, number, x, y)
            for mark in series.marks:
                yield from _point(plot, mark, number, x, y)
            continue
        across = x.all(mark.x for mark in series.marks)
        upwards = y.all(mark.y for mark in series.marks)
        places = [f"{left:.1f} {up:.1f}" for left, up in zip(across, upwards, strict=True)]
        path = "M" + ("L" if series.look == "line" else "h0M").join(places)
        ending = "" if series.look == "line" else "h0"
        yield SvgShape(path=path + ending, number=number, look=series.look, title=series.name)


def _trail(series: Series, number: int, x: _Scale, y: _Scale) -> SvgShape:
    """Leads the eye from step to step."""
    places = (f"{x.at(mark.x)} {y.at(mark.y)}" for mark in series.marks)
    return SvgShape(path="M" + "L".join(places), number=number, look="trail")


def _point(plot: Plot, mark: Mark, number: int, x: _Scale, y: _Scale) -> Iterator[SvgShape]:
    across, up = x.at(mark.x), y.at(mark.y)
    if mark.low is not None and mark.high is not None:
        ends = f"M{across} {y.at(mark.low)}V{y.at(mark.high)}"
        yield SvgShape(path=ends, number=number, look="whisker")
    name = plot.x.categories[int(mark.x)] if plot.x.categories else ""
    words = [item for item in (name, mark.label) if item]
    title = f"{', '.join(words)}: {figures.value(float(mark.y))} {plot.y.unit}"
    path = _shape(number, across, up)
    yield SvgShape(path=path, number=number, look="point", title=title.rstrip(), category=name)


SHADES = (0.01, 0.03, 0.10, 0.30, 1.00)
"""Above which excess a field of a map takes the next shade: the same on all maps."""


def shade(excess: float) -> int:
    """Returns the shade of a field of a map: 0 up to 1% above the baseline, 5 from twice the
    baseline on."""
    return sum(round(excess, 9) > step for step in SHADES)
