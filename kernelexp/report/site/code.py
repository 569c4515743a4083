"""The most expensive lines of a record's sources, each with its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from kernelexp.logs import sources
from kernelexp.model.arm import Arm, Isa
from kernelexp.model.record import Profile, Record
from kernelexp.report.document import figures
from kernelexp.report.document.document import grouped
from kernelexp.report.site.diffs import Codes, Texts, page_of, split
from kernelexp.services.lines import costs
from kernelexp.services.lines.costs import CostFigure, Costs

_SHOWN = ("stalls", "wavefronts", "conflicts", "sectors", "tma_sectors")
_CONTEXT = 2
_ARMS_MAX = 4
_SHADES = 5
# Lines with a smaller share of what the dearest line costs are left out.
_COOL = 0.01

Place = tuple[str, int]


class HeatCell(msgspec.Struct, frozen=True):
    """One field of the heat columns: a figure, and its shade from 0 (none) to 5 (most)."""

    text: str
    shade: int


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a listing; `gap` where lines before it are left out."""

    number: int
    text: str
    costs: tuple[HeatCell, ...]
    gap: bool = False
    sass: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Its machine code in each arm whose build is still in the cache, by the arm's name."""


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a file that cost something, with some around them."""

    file: str
    digest: str
    """By which the page of its text is named; empty where that can't be had."""
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """Each figure with the arms that have it."""
    lines: tuple[Line, ...]


def excerpts(
    record: Record, profiles: Mapping[str, Profile], texts: Texts, codes: Codes
) -> Iterator[Excerpt]:
    """The dear lines of each file, the dearest file first: by the counters of emulations, and by
    the samples of `profiles`, which are those of arms by name."""
    arms = _shown(record)
    isa = isa_of(record)
    spent = {name: _lines(arm, isa, profiles.get(name)) for name, arm in arms.items()}
    places = sorted({place for lines in spent.values() for place in lines})
    columns = [
        (figure, name)
        for figure in (costs.FIGURES[shown] for shown in _SHOWN)
        for name, lines in spent.items()
        if any(map(figure.read, lines.values()))
    ]
    most = {
        figure.name: max(figure.read(line) for lines in spent.values() for line in lines.values())
        for figure, _ in columns
    }
    result = []
    for file, own_places in groupby(places, key=lambda place: place[0]):
        rows = {
            place[1]: tuple(_cost(figure, spent[name].get(place), most) for figure, name in columns)
            for place in own_places
        }
        own = {number: row for number, row in rows.items() if any(cell.shade for cell in row)}
        if own:
            heat = sum(cell.shade for row in own.values() for cell in row)
            result.append((-heat, file, own))
    for _, file, own in sorted(result):
        text = texts.of(record, file)
        page = page_of(sources.of_record(record)[file]) if text is not None else ""
        compiled = {name: codes.of(arm).by_place for name, arm in arms.items()}
        yield _excerpt(file, page, text, columns, own, isa, compiled)


def _excerpt(
    file: str,
    digest: str,
    text: str | None,
    columns: Sequence[tuple[CostFigure, str]],
    own: Mapping[int, tuple[HeatCell, ...]],
    isa: Isa,
    compiled: Mapping[str, Mapping[Place, tuple[str, ...]]],
) -> Excerpt:
    used = [i for i in range(len(columns)) if any(row[i].text for row in own.values())]
    columns = [columns[i] for i in used]
    own = {number: tuple(row[i] for i in used) for number, row in own.items()}
    whole = split(text) if text is not None else []
    around = {n + off for n in own for off in range(-_CONTEXT, _CONTEXT + 1)}
    shown = sorted(n for n in around if 1 <= n <= len(whole)) if whole else sorted(own)
    empty = tuple(HeatCell("", 0) for _ in columns)
    return Excerpt(
        file=file,
        digest=digest,
        columns=tuple(
            (label, tuple(name for _, name in group))
            for label, group in groupby(columns, key=lambda item: item[0].label(isa))
        ),
        lines=tuple(
            Line(
                number=number,
                text=whole[number - 1] if whole else "",
                costs=own.get(number, empty),
                gap=number - 1 not in shown and number > 1,
                sass=tuple(
                    (name, code[file, number])
                    for name, code in compiled.items()
                    if number in own and (file, number) in code
                ),
            )
            for number in shown
        ),
    )


def _shown(record: Record) -> dict[str, Arm]:
    """The arms with columns, by name: a wrong one's counts are of another execution."""
    every = list(record.by_name.items())[:_ARMS_MAX]
    return {name: arm for name, arm in every if not arm.executed or arm.executed.is_right}


def isa_of(record: Record) -> Isa:
    """Returns the ISA of the columns: SASS where that of all their arms was executed."""
    return "sass" if all(arm.counted for arm in _shown(record).values()) else "ptx"


def _lines(arm: Arm, isa: Isa, profile: Profile | None) -> dict[Place, Costs]:
    """Returns the costs of each source line: counted by the emulation, sampled by the profiler."""
    counted = arm.counted if isa == "sass" else arm.emulated
    sampled = profile.arm.profiled.instructions if profile and profile.arm.profiled else ()
    parts = [
        ((line.file, line.line), Costs(emulated=line.counters))
        for line in (counted.lines if counted else ())
    ]
    parts += [
        ((one.file, one.line), Costs(profiled=one.figures))
        for one in sampled
        if one.line and one.file in arm.files
    ]
    return {place: costs.add(own) for place, own in grouped(parts).items()}


def _cost(figure: CostFigure, own: Costs | None, most: Mapping[str, float]) -> HeatCell:
    value = figure.read(own) if own else 0.0
    if value <= 0:
        return HeatCell("", 0)
    share = value / most[figure.name]
    return HeatCell(
        figures.value(int(value)), max(1, round(_SHADES * share)) if share > _COOL else 0
    )
