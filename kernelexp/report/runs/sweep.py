"""The page of a sweep: the outcome of the race, its table, refused variants, a map of two axes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernelexp.facts import metrics
from kernelexp.judge import consistency, sweeps
from kernelexp.judge.statistics import plateau as plateaus
from kernelexp.judge.statistics.racing import RaceResult
from kernelexp.judge.sweeps import Swept
from kernelexp.model.arm import Verdict
from kernelexp.model.experiment import Point, spell, spell_point
from kernelexp.model.record import Record, Tuning, swept_axes
from kernelexp.report.document import figures
from kernelexp.report.document.arms import measurement_lines
from kernelexp.report.document.document import (
    Block,
    Cell,
    Heading,
    Span,
    grouped,
    paragraph,
    status,
    table,
)
from kernelexp.report.runs import sizes, sweep_map, sweep_parts

if TYPE_CHECKING:  # a page needs nothing of what runs sweeps
    from kernelexp.services.run.sweep import Grid, TimingEstimate

_SHOWN = 8
_PLANNED_SHOWN = 30
_FRONT = "*"
_TOGETHER = ("variant",)
# Columns that the axes' values may take of 80, with a gap of 2 each; the figures need the others.
_AXES_WIDTH = 32


def planned(
    grid: Grid,
    timed: Sequence[str],
    refused: Mapping[str, Verdict],
    timing: TimingEstimate | None,
) -> Iterator[Block]:
    """Yields what a sweep would compare, what is refused before a build, and how long timing
    takes."""
    yield Heading(sweep_parts.heading(grid))
    count = 1 + len(grid.candidates)
    words = f"{count - len(refused)} of {count} variants, compared with"
    at = f", at each of the sizes {', '.join(timed)}" if len(timed) > 1 else ""
    points = [_own(variant.axes, grid.swept) for variant in (grid.baseline, *grid.candidates)]
    base, *variants = map(spell_point, points)
    yield paragraph(f"{words} {base}{at}.")
    buildable = [label for label in variants if label not in refused]
    if buildable:
        shown = buildable[:_PLANNED_SHOWN]
        rows = ((str(row), label) for row, label in enumerate(shown, 1))
        yield table(("row", "variant"), rows, numbers=(0,))
        if more := len(buildable) - len(shown):
            yield paragraph(f"And {more:,} more: --json lists all.", style="dim")
    yield from _grouped(refused, points)
    yield paragraph(
        f"Timing takes about {timing.seconds:.0f} s on a GPU{' for all' if at else ''}: run "
        f"{timing.run} timed {timing.run_arms} arms in {timing.run_seconds:.0f} s. Builds come "
        "before that."
        if timing
        else "How long timing takes is not known: no run of this kernel was timed here."
    )


def render(
    record: Record,
    by: tuple[str, str] | None = None,
    path: str = "",
    verbose: bool = False,
    maps: bool = True,
) -> Iterator[Block]:
    """The page of a sweep's record; `by` are the axes to map: the swept ones if they are two.

    `maps` is false for pages that have maps, charts and the results by size of their own.
    """
    examined = sweeps.examine(record)
    yield Heading(sweep_parts.heading(record))
    if record.edited:
        yield paragraph(consistency.EDIT, style="warn")
    if record.tuning:
        best = _label(record, record.names[examined.ranking[0]])
        yield from sweep_parts.summary(record, examined, record.tuning, best)
    if maps and record.sizes:
        yield from sizes.render(record)
    yield from _race(record, examined.race)
    yield _ranking(record, examined)
    if shared := figures.held_axes(record):
        yield paragraph(f"all: {spell_point(shared)}", style="dim")
    if examined.front:
        yield paragraph(
            f"{_FRONT}: no other is better in {sweep_parts.compared(record)}registers and shared "
            "memory at once (Pareto).",
            style="dim",
        )
    if any(candidate.verdict.reason == "outrun" for candidate in record.candidates):
        yield paragraph(
            "outrun: known to be slower than the fastest, so its timing ended before there was a "
            "verdict against the baseline.",
            style="dim",
        )
    yield from _refused(record)
    if examined.axes:
        yield sweep_parts.render(examined.axes, figures.compared(record.arms), record.margin)
        yield from sweep_parts.depending(record, examined.axes)
    if examined.race and examined.plateau:
        yield from sweep_parts.plateau(record, examined.race, examined.plateau)
    if flat := plateaus.counted(record.arms):
        yield from sweep_parts.counted(flat)
    swept = swept_axes(record)
    if maps and (by or len(swept) == 2):
        yield from sweep_map.document(record, by or (swept[0], swept[1]))
    yield from measurement_lines(record, verbose)
    if path:
        yield paragraph(f"Record: {path}", style="dim")


def best_row(record: Record, tuning: Tuning) -> str:
    """The best row of a search by another figure than the time, with that figure."""
    best, value, _ = sweep_parts.best(record, sweeps.examine(record))
    return f"{_label(record, best)}: {tuning.objective} {value}"


def next_step(record: Record) -> str:
    """The command that a sweep's result calls for, as a sentence; empty where nothing was timed."""
    race = sweeps.examine(record).race
    if race is None:
        return ""
    if not race.is_decided:
        return "Undecided: sweep again with a longer `--budget`, or fewer values."
    if race.leader == record.names[0]:
        return "Nothing is faster than the baseline."
    row = record.names.index(race.leader)
    return f"Next: `kernelexp new --from {record.run} --row {row}` makes an experiment of it."


def _own(axes: Point, names: Collection[str]) -> Point:
    return {axis: value for axis, value in axes.items() if axis in names}


def _label(record: Record, name: str) -> str:
    """A row with its variant: "row 7 (stages=4)"."""
    row = record.names.index(name)
    own = spell_point(_own(record.arms[row].axes, swept_axes(record)))
    return f"row {row} ({own})"


def _ranking(record: Record, examined: Swept) -> Block:
    timed = any(arm.measured for arm in record.arms)
    swept = swept_axes(record)
    labels = _columns(record, swept)
    metric = sweep_parts.metric_of(record)
    times = [figures.head_of(record.arms), "change"] if timed else []
    header = ["row", *labels, *times, *(["objective"] if metric else [])]
    header += ["regs", "smem, B", "verdict"]
    rows: list[list[Cell]] = []
    for row in examined.ranking:
        arm, name = record.arms[row], record.names[row]
        if arm.refused:
            continue
        summary = metrics.summarize(arm) if arm.has_code else {}
        own = _own(arm.axes, swept)
        values = [spell_point(own)] if labels == _TOGETHER else map(spell, own.values())
        mark = _FRONT if row in examined.front else " "
        cells: list[Cell] = [f"{row}{mark}", *values]
        if timed:
            cells += [figures.cell_of(arm), sweep_parts.change(arm.effect)]
        if metric:
            cells.append(figures.value(sweep_parts.value_of(record, name)))
        cells += [figures.value(summary.get(key)) for key in ("registers", "smem_bytes")]
        rows.append([*cells, _word(record.candidates[row - 1].verdict) if row else "baseline"])
    last = len(header) - 1
    numbers = (0, *range(1 + len(labels), last))
    return table(header, rows, numbers=numbers, unwrapped=(last,))


def _word(verdict: Verdict) -> Span:
    """The verdict's word; a variant that was outrun has none against the baseline."""
    return Span("outrun", "dim") if verdict.reason == "outrun" else status(verdict.status)


def _columns(record: Record, swept: Sequence[str]) -> tuple[str, ...]:
    """A column for each axis where they fit next to the figures, else one for all."""
    widths = (
        2 + max(len(axis), *(len(spell(arm.axes[axis])) for arm in record.arms)) for axis in swept
    )
    return tuple(swept) if sum(widths) <= _AXES_WIDTH else _TOGETHER


def _refused(record: Record) -> Iterator[Block]:
    """Variants that there was nothing to time of, by their reason."""
    if record.baseline.refused:
        word = status(record.baseline.refused.status)
        yield paragraph("The baseline is ", word, f": {record.baseline.refused.sentence}")
    swept = swept_axes(record)
    yield from _grouped(
        {
            spell_point(_own(candidate.arm.axes, swept)): candidate.verdict
            for candidate in record.candidates
            if candidate.arm.refused
        },
        [_own(arm.axes, swept) for arm in record.arms],
    )


_FIGURES = re.compile(r" \([^()]*\)|\d[\d,.]*")


def _grouped(refused: Mapping[str, Verdict], points: Sequence[Point]) -> Iterator[Block]:
    """Verdicts by what is refused: those that differ in figures only share a paragraph. `points`
    are the swept axes of all variants."""
    groups = grouped(
        ((verdict.status, _FIGURES.sub("", verdict.sentence)), label)
        for label, verdict in refused.items()
    )
    for first, *others in groups.values():
        sentence = refused[first].sentence
        common = _common({first, *others}, points) if others else ""
        also = f" Also {_some(others)}." if others and not common else ""
        word = status(refused[first].status)
        which = f", all with {common}" if common else f": {first}"
        yield paragraph(f"{1 + len(others)} ", word, f"{which}: {sentence}{also}")


def _common(labels: set[str], points: Sequence[Point]) -> str:
    """The values that variants have and no others: "order=linear or strided"; empty where values
    of one axis each do not tell."""
    own = [point for point in points if spell_point(point) in labels]
    every, telling = _values(points), _values(own)
    telling = {axis: few for axis, few in telling.items() if len(few) < len(every[axis])}
    alike = {
        spell_point(point)
        for point in points
        if all(spell(point[axis]) in few for axis, few in telling.items())
    }
    if not telling or alike != labels:
        return ""
    return ", ".join(f"{axis}={' or '.join(few)}" for axis, few in telling.items())


def _values(points: Iterable[Point]) -> dict[str, dict[str, None]]:
    """The values of each axis, spelled, in the order in which they come."""
    pairs = ((axis, spell(value)) for point in points for axis, value in point.items())
    return {axis: dict.fromkeys(few) for axis, few in grouped(pairs).items()}


def _some(labels: Sequence[str]) -> str:
    more = len(labels) - _SHOWN
    return "; ".join(labels[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _race(record: Record, race: RaceResult | None) -> Iterator[Block]:
    timed = record.measurement
    if timed is None:
        sentences = dict.fromkeys(
            candidate.verdict.sentence
            for candidate in record.candidates
            if not candidate.arm.refused
        )
        yield from (paragraph(sentence) for sentence in sentences)
        return
    if race is None:
        yield paragraph("Undecided: fewer than two processes timed the variants.", style="warn")
        return
    leader, *others = race.contenders
    rows = ", ".join(str(record.names.index(name)) for name in others[:_SHOWN])
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    margin = f"{100 * record.margin:g}%"
    judged = figures.judged(record.arms)
    head, better, worse = (
        (f"Best {judged}", "better", "worse") if judged else ("Fastest", "faster", "slower")
    )
    first = Span(f"{head}: {_label(record, leader)}", "good" if race.is_decided else "warn")
    if not race.is_decided:
        yield paragraph(
            first,
            f" so far; row{'s' if others[1:] else ''} {rows}{more} may be over {margin} {better}: "
            "allow more --budget.",
        )
    elif others:
        yield paragraph(
            first,
            f"; row{'s' if others[1:] else ''} {rows}{more} may be {better}, by {margin} at most "
            "(99%).",
        )
    else:
        least = 100 * math.expm1(min(behind.low for behind in race.behind.values()))
        (name, *more_names) = race.behind
        whose = "by its interval every other" if more_names else _label(record, name)
        yield paragraph(first, f" (99%); {whose} is at least {least:.2f}% {worse}.")
