"""Two axes of a sweep as a map: the best of each pair of values, in glyphs that need no colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelexp.model.arm import Arm
from kernelexp.model.axes import spell
from kernelexp.report.document.document import Block, Cell, Span, Style, paragraph, table

# Up to which excess over the best, and what stands for it.
_SHADES: tuple[tuple[float, str, Style], ...] = (
    (0.10, "▒", ""),
    (1.00, "▓", "warn"),
    (float("inf"), "█", "bad"),
)
_BEST, _REFUSED = "░", "x"
# Columns with a figure each that fit next to the labels; more have the glyph alone.
_COLUMNS = 7


def render(
    arms: Mapping[str, Arm], values: Mapping[str, float], across: str, down: str, margin: float
) -> Iterator[Block]:
    """`values` are the arms' figures, less being better; an arm that has none was refused."""
    columns, rows = _values(arms, across), _values(arms, down)
    best = min(values.values())
    short = len(columns) > _COLUMNS
    cells = [
        (
            Span(row, "strong"),
            *(
                _cell(arms, values, {down: row, across: column}, best, margin, short)
                for column in columns
            ),
        )
        for row in rows
    ]
    header = (f"{down} \\ {across}", *columns)
    yield table(header, cells, numbers=range(1, len(header)))
    yield paragraph(
        f"{_BEST} within {100 * margin:g}% of the best, ▒ within 10%, ▓ within 2x, █ slower, "
        f"{_REFUSED} refused; each the best over the other axes.",
        style="dim",
    )


def _values(arms: Mapping[str, Arm], axis: str) -> list[str]:
    return list(dict.fromkeys(spell(arm.axes[axis]) for arm in arms.values()))


def _cell(
    arms: Mapping[str, Arm],
    values: Mapping[str, float],
    point: Mapping[str, str],
    best: float,
    margin: float,
    short: bool,
) -> Cell:
    here = [n for n, arm in arms.items() if all(spell(arm.axes[a]) == v for a, v in point.items())]
    own = [values[name] for name in here if name in values]
    if not own:
        return Span(_REFUSED, "dim") if here else ""
    excess = min(own) / best - 1.0 if best else 0.0
    shades = ((margin, _BEST, "good"), *_SHADES)
    glyph, style = next((glyph, style) for most, glyph, style in shades if excess <= most)
    return Span(glyph if short else f"{glyph} {spell_excess(excess)}", style)


def spell_excess(excess: float) -> str:
    """In five characters at most: +0.4%, +12%, 3.1x, 60x."""
    if excess < 0.0005:
        return "best" if excess == 0.0 else "+0.0%"
    if excess < 1.0:
        return f"+{100 * excess:.1f}%" if excess < 0.0995 else f"+{100 * excess:.0f}%"
    return f"{1 + excess:.1f}x" if excess < 9.0 else f"{1 + excess:.0f}x"
