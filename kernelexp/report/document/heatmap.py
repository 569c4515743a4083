"""Two axes of a sweep as a map: the best of each pair of values, in glyphs that need no colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kernelexp.model.arm import Arm
from kernelexp.model.spelling import spell
from kernelexp.report.document.document import Block, Cell, Span, Style, paragraph, table

# Up to which excess over the best, and what stands for it.
_SHADES: tuple[tuple[float, str, Style], ...] = (
    (0.10, "▒", ""),
    (1.00, "▓", "warn"),
    (float("inf"), "█", "bad"),
)
_BEST, _REFUSED = "░", "x"
# Columns with a figure each that fit next to the labels; more have the glyph alone.
_COLUMNS = 5


def render(
    arms: Mapping[str, Arm],
    values: Mapping[str, float],
    texts: Mapping[str, str],
    axes: tuple[str, str],
    margin: float,
) -> Iterator[Block]:
    """`values` are the arms' figures, less being better, and `texts` how they are written; an arm
    that has none was refused. `axes` go across, and down."""
    across, down = axes
    columns, rows = (values_of(arms.values(), axis) for axis in (across, down))
    short = len(columns) > _COLUMNS
    cells = []
    for row in rows:
        best = (lowest(arms, values, {down: row, across: column}) for column in columns)
        glyphs = (_cell(name, values, texts, margin, short) for name in best)
        cells.append((Span(row, "strong"), *glyphs))
    header = (f"{down} \\ {across}", *columns)
    yield table(header, cells, numbers=range(1, len(header)))
    yield paragraph(
        f"{_BEST} within {100 * margin:g}% of the best, ▒ within 10%, ▓ within 2x, █ beyond, "
        f"{_REFUSED} refused; each cell shows the best variant with these two values.",
        style="dim",
    )


def values_of(arms: Iterable[Arm], axis: str) -> tuple[str, ...]:
    """Numbers in their order, words in that of the sweep."""
    values = {spell(arm.axes[axis]): arm.axes[axis] for arm in arms}
    numbers = {text: item for text, item in values.items() if isinstance(item, int)}
    whole = len(numbers) == len(values)
    return tuple(sorted(numbers, key=lambda text: numbers[text]) if whole else values)


def lowest(
    arms: Mapping[str, Arm], values: Mapping[str, float], point: Mapping[str, str]
) -> str | None:
    """The arm at these axes' values with the lowest figure; empty where all were refused, None
    where there is none."""
    here = [n for n, arm in arms.items() if all(spell(arm.axes[a]) == v for a, v in point.items())]
    own = [name for name in here if name in values]
    return min(own, key=lambda name: values[name]) if own else "" if here else None


def excess(values: Mapping[str, float], name: str) -> float:
    """Returns the excess of an arm's figure over the best, as a fraction."""
    best = min(values.values())
    return values[name] / best - 1.0 if best else 0.0


def _cell(
    name: str | None,
    values: Mapping[str, float],
    texts: Mapping[str, str],
    margin: float,
    short: bool,
) -> Cell:
    if not name:
        return "" if name is None else Span(_REFUSED, "dim")
    over = excess(values, name)
    shades = ((margin, _BEST, "good"), *_SHADES)
    glyph, style = next((glyph, style) for most, glyph, style in shades if over <= most)
    return Span(glyph if short else f"{glyph} {texts[name]}", style)
