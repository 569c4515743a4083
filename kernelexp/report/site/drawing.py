"""Charts as SVG and PNG files, of the shapes and colours of the pages.

An SVG needs nothing; resvg turns it into a PNG, with a font from the package index.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from markupsafe import Markup

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.report.charts.chart import Bars, Chart, HeatMap, Plot
from kernelexp.report.document import figures
from kernelexp.report.site import svg
from kernelexp.report.site.rendering import asset, environment
from kernelexp.report.site.svg import Drawing, Key
from kernelexp.system import wholefile

FORMATS = (".svg", ".png")
WIDTH = svg.WIDTH
_LINE, _MARGIN, _LEFT = 16.0, 12.0, 150.0
_LETTERS = 112
"""Of 11 pixels, which a line holds."""
_ROW, _BAR = 26.0, 14.0


class PlacedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text at a place in pixels."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    look: str = ""


class PlacedRect(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float
    look: str


class PlacedChart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with its title above it and its legend and note below, from `top`."""

    top: float
    title: tuple[str, ...]
    notes: tuple[str, ...]
    body: float
    """Height of what is between them."""
    drawing: Drawing | None = None
    rects: tuple[PlacedRect, ...] = ()
    texts: tuple[PlacedText, ...] = ()
    keys: tuple[Key, ...] = ()

    @property
    def head(self) -> float:
        return _LINE * len(self.title) + 8

    @property
    def height(self) -> float:
        return self.head + self.body + _LINE * (len(self.keys) + len(self.notes)) + 2 * _MARGIN


def require_format(path: Path) -> None:
    """UsageError for a file whose name says another format."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--out {path} should end in .svg or .png.")


def write(charts: Sequence[Chart], path: Path) -> None:
    """Draws the charts below each other into one file."""
    require_format(path)
    text = render(charts)
    content = text.encode() if path.suffix.lower() == ".svg" else to_png(text)
    wholefile.write(path, content, durable=False)


def render(charts: Sequence[Chart]) -> str:
    """Renders charts as an SVG document in light colours."""
    placed: list[PlacedChart] = []
    top = 0.0
    for chart in charts:
        placed.append(_placed(chart, top))
        top += placed[-1].height
    colours = palette("light")
    return (
        environment()
        .get_template("chart.svg")
        .render(
            charts=placed,
            width=WIDTH,
            height=top,
            background=colours["bg"],
            style=Markup(_resolved(asset("plot.css") + asset("file.css"), colours)),
        )
    )


def palette(scheme: str) -> dict[str, str]:
    """The pages' colours by name, of `light` or `dark`."""
    light, dark = re.findall(r":root\s*{([^}]*)}", asset("style.css"))[:2]
    own = dict(re.findall(r"--([\w-]+):\s*(#\w+)", light))
    return own if scheme == "light" else own | dict(re.findall(r"--([\w-]+):\s*(#\w+)", dark))


def to_png(text: str) -> bytes:
    """Draws at twice the size in pixels, in one font everywhere: containers often have none."""
    try:
        import font_source_sans_pro
        import resvg_py
    except ImportError:
        raise EnvironmentFault(
            "a PNG is drawn by resvg, which is not installed: pip install 'kernelexp[plot]', or "
            "name a file that ends in .svg."
        ) from None
    content = resvg_py.svg_to_bytes(
        svg_string=text,
        zoom=2.0,
        skip_system_fonts=True,
        font_dirs=[font_source_sans_pro.font_directory],
        sans_serif_family="Source Sans Pro",
    )
    return bytes(content)


def _resolved(style: str, colours: dict[str, str]) -> str:
    """Puts the colours in place: resvg knows no variables."""
    return re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], style)


def _placed(chart: Chart, top: float) -> PlacedChart:
    empty = PlacedChart(
        top=top,
        title=tuple(textwrap.wrap(chart.title, _LETTERS - 20)),
        notes=tuple(textwrap.wrap(_noted(chart), _LETTERS)),
        body=0,
    )
    match chart:
        case Plot():
            drawing = svg.draw(chart)
            return msgspec.structs.replace(
                empty, body=drawing.height, drawing=drawing, keys=drawing.keys
            )
        case HeatMap():
            return msgspec.structs.replace(
                empty,
                body=_ROW * (len(chart.rows) + 1),
                rects=tuple(_tiles(chart)),
                texts=tuple(_tile_texts(chart)),
            )
        case Bars():
            count = len(chart.groups) * len(chart.names)
            return msgspec.structs.replace(
                empty,
                body=_BAR * count + 8 * len(chart.groups),
                rects=tuple(_bars(chart)),
                texts=tuple(_bar_texts(chart)),
                keys=tuple(
                    Key(name=name, path="M-7 -5h14v10h-14z", number=number, look="point")
                    for number, name in enumerate(chart.names)
                ),
            )


def _noted(chart: Chart) -> str:
    """The note, after what the bands are."""
    bands = [f"Grey: {band.name}." for band in chart.bands] if isinstance(chart, Plot) else []
    unit = [f"In {chart.unit}."] if isinstance(chart, Bars) else []
    return " ".join((*bands, *unit, chart.note))


def _across(heat: HeatMap) -> float:
    return (WIDTH - _LEFT - _MARGIN) / len(heat.columns)


def _tiles(heat: HeatMap) -> Iterator[PlacedRect]:
    wide = _across(heat)
    for down, row in enumerate(heat.tiles):
        for place, tile in enumerate(row):
            if tile is not None and tile.value is not None:
                yield PlacedRect(
                    x=round(_LEFT + place * wide, 1),
                    y=_ROW * (down + 1),
                    width=round(wide - 2, 1),
                    height=_ROW - 2,
                    look=f"h{svg.shade(tile.value)}",
                )


def _tile_texts(heat: HeatMap) -> Iterator[PlacedText]:
    wide = _across(heat)
    yield PlacedText(x=_MARGIN, y=_ROW - 9, text=f"{heat.down} \\ {heat.across}", look="title")
    for place, name in enumerate(heat.columns):
        x = round(_LEFT + (place + 0.5) * wide, 1)
        yield PlacedText(x=x, y=_ROW - 9, text=name, anchor="middle")
    for down, (name, row) in enumerate(zip(heat.rows, heat.tiles, strict=True)):
        y = _ROW * (down + 2) - 9
        yield PlacedText(x=_LEFT - 8, y=y, text=name, anchor="end")
        for place, tile in enumerate(row):
            if tile is not None:
                shade = None if tile.value is None else svg.shade(tile.value)
                x = round(_LEFT + (place + 0.5) * wide, 1)
                look = "title" if shade is None else f"h{shade}"
                yield PlacedText(x=x, y=y, text=tile.text, anchor="middle", look=look)


def _bar_rows(bars: Bars) -> Iterator[tuple[float, str, int, float | None]]:
    """The top of each bar, the label of the first of a group, its number and its figure."""
    top = 0.0
    for label, values in bars.groups:
        for number, value in enumerate(values):
            yield top, "" if number else label, number, value
            top += _BAR
        top += 8


def _bars(bars: Bars) -> Iterator[PlacedRect]:
    most = bars.most
    for top, _, number, value in _bar_rows(bars):
        width = round((WIDTH - _LEFT - 80) * (value or 0.0) / most, 1)
        yield PlacedRect(x=_LEFT, y=top, width=width, height=_BAR - 3, look=f"s{number % 4}")


def _bar_texts(bars: Bars) -> Iterator[PlacedText]:
    for top, label, _, value in _bar_rows(bars):
        if label:
            yield PlacedText(x=_LEFT - 8, y=top + 10, text=label, anchor="end")
        yield PlacedText(x=WIDTH - 70, y=top + 10, text=figures.value(value))
