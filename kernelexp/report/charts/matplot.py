"""Charts as SVG or PNG files, drawn by matplotlib.

Series differ in marker, dash and hatch as well as in colour, and the colours in lightness, so that
a chart reads in grey and with any kind of colour vision (the palette is Okabe and Ito's).
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.text import printable
from kernelexp.report.charts.chart import Bars, Chart, HeatMap, Plot, Series
from kernelexp.system import wholefile

FORMATS = (".svg", ".png")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":")
_HATCHES = ("", "///", "...", "xxx")
_SETTINGS = {
    "text.parse_math": False,  # a title may have dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "kernelexp",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
}
_LABELS_MAX = 40


def require_format(path: Path) -> None:
    """UsageError for a file whose name says another format."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--out {path} should end in .svg or .png.")


def write(charts: Sequence[Chart], path: Path) -> None:
    """Draws the charts below each other into one file."""
    require_format(path)
    wholefile.write(path, render(charts, path.suffix.lower().lstrip(".")), durable=False)


def render(charts: Sequence[Chart], form: str) -> bytes:
    """The same as bytes of an svg or png; the same charts give the same bytes."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise EnvironmentFault(
            "matplotlib draws charts and is not installed: pip install 'kernelexp[plot]'."
        ) from None
    file = io.BytesIO()
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        heights = [_height(chart) for chart in charts]
        figure = Figure(figsize=(8.0, sum(heights)), layout="constrained")
        rows = figure.subplots(len(charts), 1, height_ratios=heights, squeeze=False)
        for chart, (axes,) in zip(charts, rows, strict=True):
            _draw(axes, chart)
        about = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(file, format=form, dpi=150, metadata=about)
    return file.getvalue()


def _height(chart: Chart) -> float:
    """Inches."""
    if isinstance(chart, HeatMap):
        return 1.4 + 0.35 * len(chart.rows)
    if isinstance(chart, Bars):
        return 1.5 + 0.25 * len(chart.groups) * len(chart.names)
    return 4.0


def _draw(axes: Any, chart: Chart) -> None:
    axes.set_title(printable(chart.title), loc="left", fontsize=10)
    match chart:
        case Plot():
            _plot(axes, chart)
        case HeatMap():
            _heat(axes, chart)
        case Bars():
            _bars(axes, chart)


def _note(axes: Any, label: str, note: str) -> None:
    axes.set_xlabel(f"{printable(label)}\n{printable(note)}", wrap=True)


def _plot(axes: Any, plot: Plot) -> None:
    for number, band in enumerate(plot.bands):
        look = {"color": "0.85"} if number == 0 else {"color": "0.55", "hatch": "///", "fill": None}
        axes.axhspan(band.low, band.high, label=printable(band.name), linewidth=0, **look)
    for number, series in enumerate(plot.series):
        _series(axes, series, number, joined=plot.x.ordered)
    if plot.x.categories:
        step = -(-len(plot.x.categories) // _LABELS_MAX)
        shown = range(0, len(plot.x.categories), step)
        axes.set_xticks(shown, [printable(plot.x.categories[i]) for i in shown], rotation=45)
    for axis, own in ((axes.xaxis, plot.x), (axes.yaxis, plot.y)):
        if own.log:
            _scale(axes, axis)
    _note(axes, plot.x.title, plot.note)
    axes.set_ylabel(printable(plot.y.title))
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if plot.y.log:  # below a roof there is room for the legend
        axes.set_ylim(bottom=axes.get_ylim()[0] / 6)
    if len(plot.series) + len(plot.bands) > 1:
        place = "lower right" if plot.y.log else "best"
        axes.legend(fontsize=8, framealpha=0.85, edgecolor="none", loc=place)


def _scale(axes: Any, axis: Any) -> None:
    """A logarithmic axis with plain numbers: matplotlib's own are powers, in its mathtext."""
    from matplotlib.ticker import LogLocator

    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="minor", labelsize=7)


def _series(axes: Any, series: Series, number: int, joined: bool) -> None:
    colour = _COLOURS[number % len(_COLOURS)]
    x, y = [mark.x for mark in series.marks], [mark.y for mark in series.marks]
    name = printable(series.name)
    if series.look == "line":
        dash = _DASHES[number % len(_DASHES)]
        axes.plot(x, y, color=colour, linestyle=dash, label=name)
        return
    if series.look == "dots":
        axes.plot(x, y, ".", color="0.45", markersize=2, label=name, rasterized=True)
        return
    below = [mark.y - mark.low if mark.low is not None else 0.0 for mark in series.marks]
    above = [mark.high - mark.y if mark.high is not None else 0.0 for mark in series.marks]
    ends = (below, above) if any(below) or any(above) else None
    if joined:
        axes.plot(x, y, color=colour, alpha=0.4, linewidth=1)
    marker = _MARKERS[number % len(_MARKERS)]
    axes.errorbar(x, y, yerr=ends, fmt=marker, color=colour, capsize=3, markersize=5, label=name)


def _heat(axes: Any, heat: HeatMap) -> None:
    worst = 1.0  # twice the best time is as dark as it gets
    shades = [
        [min(t.value, worst) if t and t.value is not None else float("nan") for t in row]
        for row in heat.tiles
    ]
    image = axes.imshow(shades, cmap="cividis_r", vmin=0.0, vmax=worst, aspect="auto")
    axes.set_xticks(range(len(heat.columns)), [printable(column) for column in heat.columns])
    axes.set_yticks(range(len(heat.rows)), [printable(item) for item in heat.rows])
    for down, row in enumerate(heat.tiles):
        for across, tile in enumerate(row):
            if tile is not None:
                dark = tile.value is not None and tile.value > 0.5
                colour = "white" if dark else "black"
                axes.text(across, down, tile.text, ha="center", va="center", color=colour)
    _note(axes, heat.across, heat.note)
    axes.set_ylabel(printable(heat.down))
    axes.figure.colorbar(image, ax=axes, label="excess over the best, up to 2x", format="{x:.0%}")


def _bars(axes: Any, bars: Bars) -> None:
    thick = 0.8 / len(bars.names)
    for number, name in enumerate(bars.names):
        axes.barh(
            [place + number * thick for place in range(len(bars.groups))],
            [values[number] or 0.0 for _, values in bars.groups],
            height=thick,
            label=printable(name),
            color=_COLOURS[number % len(_COLOURS)],
            hatch=_HATCHES[number % len(_HATCHES)],
            edgecolor="white",
        )
    middle = (len(bars.names) - 1) * thick / 2
    axes.set_yticks(
        [place + middle for place in range(len(bars.groups))],
        [printable(label) for label, _ in bars.groups],
    )
    axes.invert_yaxis()
    _note(axes, bars.unit, bars.note)
    axes.legend(fontsize=8, framealpha=0.85, edgecolor="none")
