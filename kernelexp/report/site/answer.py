"""The opening of an experiment's page: the answer for each candidate, a forest plot of their
changes, and the shares of the chip's limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.dossier.standing import Standing, Standings, before_change
from kernelexp.facts import chips
from kernelexp.judge import consistency, expectations
from kernelexp.judge.consistency import Doubts
from kernelexp.judge.limits import bounds
from kernelexp.judge.limits.bounds import Use
from kernelexp.judge.limits.case import Case
from kernelexp.model.arm import Arm, Status
from kernelexp.model.experiment import spell_point
from kernelexp.model.measurement import Effect
from kernelexp.model.record import Profile, Record
from kernelexp.report.charts.chart import Bars
from kernelexp.report.document import figures
from kernelexp.report.document.document import Cell, Span, grouped
from kernelexp.report.log import logbook, pending
from kernelexp.report.runs import sizes
from kernelexp.report.site import svg
from kernelexp.report.site.svg import Tick
from kernelexp.report.variants import edited
from kernelexp.report.variants import expectations as expectation_report


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one candidate, in a word and a sentence."""

    candidate: str
    word: Cell
    sentence: str


def answers(name: str, standings: Standings) -> Iterator[Answer]:
    """One for each candidate, in their order."""
    for standing, point in standings.points:
        yield Answer(
            candidate=spell_point(point),
            word=logbook.verdict(standing),
            sentence=_sentence(name, standing),
        )


def basis(standings: Standings, doubts: Doubts, guess: str = "") -> Iterator[Cell]:
    """Yields the grounds of the answers, a sentence each, and what speaks against them; `guess`:
    that the tolerance is a draft's."""
    records = standings.by_run.values()
    yield from dict.fromkeys(map(_origin, records))
    for record in records:
        yield from sizes.crossings(record)
        yield from (Span(remark, "warn") for remark in consistency.remarks(record, doubts))
        if record.hypothesis.split() != standings.experiment.hypothesis.split():
            when, where = ("the run", "with the run")
            if record.provenance == "published":
                when, where = ("this was recorded", "under As published")
            yield Span(f"The hypothesis was edited after {when}; as it was, it is {where}.", "warn")
    for standing in standings.candidates:
        if standing.candidate and standing.candidate.reproduces is False:
            yield Span(standing.candidate.reproduction, "warn")
    if guess and records:
        yield Span(guess, "warn")


def _origin(record: Record) -> str:
    day = record.created[:10]
    if record.provenance == "published":
        return f"Published: {record.source}. Nobody here has timed it."
    if record.measurement is None:
        sizes_counted = {arm.executed.size for arm in record.arms if arm.executed}
        counts = f" Counts are of size {', '.join(sorted(sizes_counted))}: what changes there need "
        counts += "not change so at another, and is no time."
        return f"Built and emulated here on {day}, not timed.{counts if sizes_counted else ''}"
    if not any(arm.measured for arm in record.arms):
        return f"Run on {record.device} on {day}; nothing was timed."
    timed = [one.size for one in record.sizes]
    at = f"sizes {', '.join(timed)}" if timed else f"size {record.size or 'full'}"
    return f"Measured on {record.device} on {day}, at {at}."


def _sentence(name: str, standing: Standing) -> str:
    if standing.changed:
        return f"{before_change(standing)}: `kernelexp run {name}` asks again."
    if standing.verdict is None:
        return "There is no record of it yet."
    if standing.verdict.status is Status.UNMEASURED and not pending.is_placebo(standing):
        # Why is said once, with the figures.
        return " ".join(untimed(standing)) or standing.verdict.sentence
    return standing.verdict.sentence


_CHANGES = 3
"""Of the figures that differ most, where nothing was expected."""


def untimed(standing: Standing) -> Iterator[str]:
    """Yields the findings on a candidate without a time: the outcome of its expectations, else what
    it changes."""
    if standing.is_wrong:
        yield "counts of a wrong candidate are not shown."
    elif standing.record and standing.record.baseline.refused:
        yield "its baseline is wrong, so that there is nothing to compare it with."
    elif pending.is_placebo(standing):
        yield "a placebo: the same instructions as the baseline, launched alike."
    elif expected := list(_expected(standing)):
        yield from expected
    elif standing.record and standing.arm:
        changes = edited.changes(standing.record.baseline, standing.arm)
        if words := ", ".join(itertools.islice(changes, _CHANGES)):
            yield f"{words}."


def _expected(standing: Standing) -> Iterator[str]:
    record, candidate = standing.record, standing.candidate
    if record is None or candidate is None:
        return
    name = record.names[1 + record.candidates.index(candidate)]
    for judged in expectations.of_record(record).get(name, ()):
        came = expectation_report.came_out(judged)
        label = expectation_report.label(judged.metric)
        yield f"{label}: {came} ({judged.kind}), expected {judged.expected}: {judged.result}."


def limits(standings: Standings, profiles: Mapping[str, Profile]) -> Bars | None:
    """Charts how near the baseline and the candidates of one record come to the limits of the
    chip, of those that are known of them all; None where none is. `profiles` are those of arms
    by name."""
    record = next((c.record for c in standings.candidates if c.record and not c.changed), None)
    if record is None or record.measurement is None:
        return None
    timed, shown = _rows(record, profiles)
    if not shown:  # of some arms alone: what can be reckoned of all
        timed, shown = _rows(record, {})
    if not shown:
        return None
    profiled = {own.device for p in profiles.values() if (own := p.arm.profiled)}
    cards = sorted(profiled - {record.device, ""})
    kinds: dict[str, list[str]] = grouped((row[0].kind or "", row[0].resource) for row in shown)
    if cards and "profiled" in kinds:
        kinds[f"profiled on {', '.join(cards)}"] = kinds.pop("profiled")
    every = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
    every = next(iter(kinds)) if len(kinds) == 1 else every
    return Bars(
        title="Share of the chip's limits",
        unit="%",
        names=timed,
        groups=tuple(_groups(shown)),
        note=f"{every[0].upper()}{every[1:]}. `kernelexp explain` names each limit's source.",
    )


def _groups(shown: Sequence[tuple[Use, ...]]) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    """The limit that is nearest first, without those of units that nothing uses."""
    rows = [(row[0].resource, tuple(use.percent for use in row)) for row in shown]
    used = [row for row in rows if any(round(percent or 0, 2) for percent in row[1])]
    yield from sorted(used or rows, key=lambda row: -max(percent or 0 for percent in row[1]))


def _rows(
    record: Record, profiles: Mapping[str, Profile]
) -> tuple[tuple[str, ...], list[tuple[Use, ...]]]:
    """The names of the arms that were timed, and their uses of each limit that all have."""
    uses = {
        name: bounds.uses(_case(record, arm, profiles.get(name)))
        for name, arm in record.by_name.items()
        if arm.measured
    }
    return tuple(uses), [row for row in zip(*uses.values(), strict=True) if _is_shown(row)]


def _is_shown(row: tuple[Use, ...]) -> bool:
    """Whether all sides are known, of one kind: a profile's share and a reckoned one do not
    compare."""
    return all(use.percent is not None for use in row) and len({use.kind for use in row}) == 1


def _case(record: Record, arm: Arm, profile: Profile | None) -> Case:
    full = arm.measured is not None and arm.measured.size == "full"
    return Case(
        label="",
        arm=msgspec.structs.replace(arm, profiled=profile.arm.profiled if profile else None),
        chip=chips.find(record.device),
        flops=arm.measured.flops if arm.measured else 0,
        bytes=record.bytes if full else 0,
    )


_EDGE = 4.0
"""Percent of the width nearer than which to an end no figure fits below the axis."""


class ForestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate."""

    candidate: str
    verdict: Cell
    change: str
    low: float
    at: float
    high: float


class Forest(msgspec.Struct, frozen=True, kw_only=True):
    """The rows over one axis."""

    title: str
    rows: tuple[ForestRow, ...]
    zero: float
    margin: tuple[float, float]
    """Its ends."""
    percent: float
    ticks: tuple[Tick, ...]


def forest(name: str, standings: Standings) -> Forest | None:
    """Draws a forest plot; None where no candidate is measured as it is now.

    Positions are in percent of the chart's width, so that one drawing fits a phone and a screen.
    """
    found = [
        (spell_point(point), one, one.effect)
        for one, point in standings.points
        if one.record and one.effect
    ]
    if not found:
        return None
    margin = max(100 * one.record.margin for _, one, _ in found if one.record)
    ends = [end for *_, effect in found for end in _interval(effect)]
    low, high = min(*ends, -margin), max(*ends, margin)
    room = 0.05 * (high - low)
    low, high = low - room, high + room

    def at(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    arms = [one.arm for _, one, _ in found if one.arm]
    return Forest(
        title=f"{name}: change of {figures.compared(arms)} to the baseline",
        rows=tuple(
            ForestRow(
                candidate=point,
                verdict=logbook.verdict(one),
                change=figures.effect(effect),
                low=at(_interval(effect)[0]),
                at=at(_percent(effect.ratio)),
                high=at(_interval(effect)[1]),
            )
            for point, one, effect in found
        ),
        zero=at(0.0),
        margin=(at(-margin), at(margin)),
        percent=margin,
        ticks=tuple(
            Tick(at(value), f"{value:+g}%" if value else "0")
            for value in svg.steps(low, high)
            if _EDGE <= at(value) <= 100 - _EDGE
        ),
    )


def _interval(effect: Effect) -> tuple[float, float]:
    """Returns an interval in percent; of one process, which has none, its change."""
    if effect.low <= 0:
        return _percent(effect.ratio), _percent(effect.ratio)
    return _percent(effect.low), _percent(effect.high)


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)
