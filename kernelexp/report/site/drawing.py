"""Charts as SVG and PNG files, with the shapes and colours of the pages.

An SVG needs nothing; resvg turns it into a PNG, with a font from the package index.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import msgspec
from markupsafe import Markup

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.report.charts.chart import Bars, Chart, HeatMap, Plot
from kernelexp.report.site import svg
from kernelexp.report.site.rendering import asset, environment
from kernelexp.report.site.svg import Drawing, Key
from kernelexp.system import disk

FORMATS = (".svg", ".png")
WIDTH = svg.WIDTH
_LINE, _MARGIN, _LEFT = 16.0, 12.0, 150.0
_LETTERS = 112
"""Of 11 pixels, which a line holds."""
_ROW, _BAR, _GAP = 26.0, 14.0, 8.0
"""Height of a map's row, of a bar, and between groups of bars."""


class PlacedChart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with its title above it and its legend and note below, from `top`, in pixels."""

    chart: Chart
    top: float
    title: tuple[str, ...]
    notes: tuple[str, ...]
    body: float
    """Height of what is between them."""
    drawing: Drawing | None = None
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
    disk.write(path, content, durable=False)


def render(charts: Sequence[Chart]) -> str:
    """Renders charts as an SVG document in light colours."""
    placed: list[PlacedChart] = []
    top = 0.0
    for chart in charts:
        placed.append(_placed(chart, top))
        top += placed[-1].height
    colours = palette("light")
    # resvg knows no variables.
    style = asset("plot.css") + asset("file.css")
    style = re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], style)
    return (
        environment()
        .get_template("chart.svg")
        .render(
            charts=placed,
            width=WIDTH,
            height=top,
            left=_LEFT,
            margin=_MARGIN,
            row=_ROW,
            bar=_BAR,
            gap=_GAP,
            background=colours["bg"],
            style=Markup(style),
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


def _placed(chart: Chart, top: float) -> PlacedChart:
    drawing, keys = None, tuple[Key, ...]()
    match chart:
        case Plot():
            drawing = svg.draw(chart)
            body, keys = drawing.height, drawing.keys
        case HeatMap():
            body = _ROW * (len(chart.rows) + 1)
        case Bars():
            body = len(chart.groups) * (_BAR * len(chart.names) + _GAP)
            keys = tuple(
                Key(name=name, path="M-7 -5h14v10h-14z", number=number, look="point")
                for number, name in enumerate(chart.names)
            )
    return PlacedChart(
        chart=chart,
        top=top,
        title=tuple(textwrap.wrap(chart.title, _LETTERS - 20)),
        notes=tuple(textwrap.wrap(_noted(chart), _LETTERS)),
        body=body,
        drawing=drawing,
        keys=keys,
    )


def _noted(chart: Chart) -> str:
    """The note, after what the bands are."""
    bands = [f"Grey: {band.name}." for band in chart.bands] if isinstance(chart, Plot) else []
    unit = [f"In {chart.unit}."] if isinstance(chart, Bars) else []
    return " ".join((*bands, *unit, chart.note))
