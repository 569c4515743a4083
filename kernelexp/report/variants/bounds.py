"""How near arms come to the limits of their chip, as a table with the sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelexp.judge import bounds as judging
from kernelexp.judge.bounds import Use
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, paragraph, table


def render(uses: Mapping[str, Sequence[Use]]) -> Iterator[Block]:
    """A row per resource with the use of each arm by its name, then where the figures are from."""
    rows: list[tuple[Cell, ...]] = []
    near = {name: judging.nearest(tuple(own)) for name, own in uses.items()}
    for row in zip(*uses.values(), strict=True):
        kinds = dict.fromkeys(use.kind or "" for use in row)
        cells = [_cell(use, near[name]) for name, use in zip(uses, row, strict=True)]
        rows.append((row[0].resource, *cells, " / ".join(filter(None, kinds))))
    names = [_head(name, own) for name, own in uses.items()]
    yield table(("of the chip's limit", *names, "kind"), rows, numbers=range(1, len(names) + 1))
    profiled = [own[0] for own in zip(*uses.values(), strict=True) if own[0].kind == "profiled"]
    if profiled:
        words = ", ".join(f"{use.resource} {use.reckoned}" for use in profiled)
        yield paragraph(f"Shares of ncu's peaks: {words}.", indent=2, style="dim")
    for row in zip(*uses.values(), strict=True):
        if row[0].kind == "profiled":
            continue
        if words := _from(dict(zip(uses, row, strict=True))):
            yield paragraph(f"{row[0].resource}: {words}.", indent=2, style="dim")


def _head(name: str, uses: Sequence[Use]) -> str:
    """The arm's name, and the time of which its uses are shares."""
    time = next((use.time_ms for use in uses if use.time_ms is not None), None)
    share = f"of {figures.time_ms(time)} ms" if time else ""
    return ", ".join(filter(None, (name, share))) or "used"


def _cell(use: Use, near: Use | None) -> Cell:
    if use.percent is None:
        return figures.NONE if use.floor_ms is None else f">= {figures.time_ms(use.floor_ms)} ms"
    text = f"{use.percent:.1f}%"
    return Span(f"{text} *", "strong") if use is near else f"{text}  "


def _from(uses: Mapping[str, Use]) -> str:
    """The formula of each arm, once where it is the same, and the limit's source."""
    by_formula: dict[str, list[str]] = {}
    for name, use in uses.items():
        by_formula.setdefault(use.reckoned, []).append(name)
    if len(by_formula) == 1:
        words = list(by_formula)
    else:
        words = [f"{' and '.join(names)} {each}" for each, names in by_formula.items()]
    sources = dict.fromkeys(use.source for use in uses.values() if use.source)
    return "; ".join(filter(None, [*words, *sources]))
