"""The shares of their chip's limits that arms reach, as a table with sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kernelexp.judge.limits import bounds as judging
from kernelexp.judge.limits.bounds import Use
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, grouped, paragraph, table

_PARTS = ("shared memory", "L1 tag stage")
_SHOWN = 10.0
"""Percent of a limit from which a limit that is not a main one has a row."""


def render(
    uses: Mapping[str, Sequence[Use]], verbose: bool = False, most: int | None = None
) -> Iterator[Block]:
    """A row per resource with the use of each arm by its name, the nearest limit of the last arm
    first, `most` of them; with `verbose` also limits that are hardly used, and where the figures
    are from."""
    rows: list[tuple[Cell, ...]] = []
    near = {name: judging.nearest(own) for name, own in uses.items()}
    every = [*zip(*uses.values(), strict=True)]
    shown = [
        row
        for row in every
        if verbose or (_is_known(row) and not _is_low(row) and not _is_told(row, every))
    ]
    shown.sort(key=lambda row: -_most(row[-1:]))
    if most and not verbose:
        largest = sorted(filter(_is_whole(every), shown), key=lambda row: -_most(row))[:most]
        shown = [row for row in shown if row in largest]
    for row in shown:
        kinds = dict.fromkeys(use.kind or "" for use in row)
        cells = [_cell(use, near[name]) for name, use in zip(uses, row, strict=True)]
        rows.append((row[0].resource, *cells, " / ".join(filter(None, kinds))))
    names = [_head(name, own) for name, own in uses.items()]
    if not rows:
        return
    yield table(("of the chip's limit", *names, "kind"), rows, numbers=range(1, len(names) + 1))
    if verbose:
        yield from _sources(uses, shown)
    else:
        low = ", ".join(row[0].resource for row in every if _is_low(row)) if not most else ""
        words = f"Below {_SHOWN:.0f}%: {low}. " if low else ""
        unknown = [
            row[0].resource
            for row in every
            if _is_main(row) and not _is_known(row)
            if not all(use.reckoned == judging.UNUSED for use in row)
        ]
        if any(use.rough for row in shown for use in row):
            words += "~: of counts that two small sizes do not solve. "
        words += f"Not known: {', '.join(unknown)}. " if unknown and shown else ""
        rest = "The other limits and the arithmetic" if most else "The arithmetic"
        yield paragraph(f"{words}{rest}: --verbose.", indent=2, style="dim")


def _sources(
    uses: Mapping[str, Sequence[Use]], shown: Sequence[tuple[Use, ...]]
) -> Iterator[Block]:
    profiled = [row[0] for row in shown if row[0].kind == "profiled"]
    if profiled:
        words = ", ".join(f"{use.resource} {use.reckoned}" for use in profiled)
        yield paragraph(f"Shares of ncu's peaks: {words}.", indent=2, style="dim")
    for row in shown:
        if row[0].kind == "profiled":
            continue
        if words := _from(dict(zip(uses, row, strict=True))):
            yield paragraph(f"{row[0].resource}: {words}.", indent=2, style="dim")


def _most(row: Sequence[Use]) -> float:
    """Percent, else the floor, which orders those without a time."""
    return max((use.floor_ms or 0.0) if use.percent is None else 1e6 + use.percent for use in row)


def _is_told(row: Sequence[Use], every: Sequence[Sequence[Use]]) -> bool:
    """Whether the whole of L1 is as busy as its data pipe, which has a row of its own."""
    pipe = next(uses for uses in every if uses[0].resource == "L1 data pipe")
    return row[0].resource == "L1" and [f"{use.percent or 0:.1f}" for use in row] == [
        f"{use.percent or 0:.1f}" for use in pipe
    ]


def _is_whole(every: Sequence[tuple[Use, ...]]) -> Callable[[tuple[Use, ...]], bool]:
    """Whether a limit's work is not part of that of the L1 data pipe, which is known."""
    pipe = next(row for row in every if row[0].resource == "L1 data pipe")
    return lambda row: not _is_known(pipe) or row[0].resource not in _PARTS


def _is_main(row: Sequence[Use]) -> bool:
    return row[0].resource in judging.MAIN


def _is_known(row: Sequence[Use]) -> bool:
    return any(use.percent is not None or use.floor_ms is not None for use in row)


def _is_low(row: Sequence[Use]) -> bool:
    """Whether a limit is left out: a main one only where unused, as tensor cores by a transpose."""
    known = [use.percent for use in row if use.percent is not None]
    if not known:
        return not any(use.floor_ms for use in row) and _is_known(row)
    return max(known) < (0.05 if _is_main(row) else _SHOWN)


def _head(name: str, uses: Sequence[Use]) -> str:
    """The arm's name, and the time that its shares refer to."""
    time = next((use.time_ms for use in uses if use.time_ms is not None), None)
    share = f"of {figures.time_ms(time)} ms" if time else ""
    return ", ".join(filter(None, (name, share))) or "used"


def _cell(use: Use, near: Use | None) -> Cell:
    if use.percent is None:
        least = "~" if use.rough else ">="
        return (
            figures.NONE if use.floor_ms is None else f"{least} {figures.time_ms(use.floor_ms)} ms"
        )
    text = f"{'~ ' * use.rough}{use.percent:.1f}%"
    return Span(f"{text} *", "strong") if use is near else f"{text}  "


def _from(uses: Mapping[str, Use]) -> str:
    """The formula of each arm, once where it is the same, and the limit's source."""
    by_formula = grouped((use.reckoned, name) for name, use in uses.items())
    if len(by_formula) == 1:
        words = list(by_formula)
    else:
        words = [f"{' and '.join(names)} {item}" for item, names in by_formula.items()]
    sources = dict.fromkeys(use.source for use in uses.values() if use.source)
    return "; ".join(filter(None, [*words, *sources]))
