"""A forest plot of an experiment: each candidate's change of time, its interval, and the margin.

Positions are in percent of the chart's width, so that one drawing fits a phone and a screen.
"""

from __future__ import annotations

import msgspec

from kernelexp.dossier.standing import Standings
from kernelexp.model.measurement import Effect
from kernelexp.model.spelling import spell_point
from kernelexp.report.document import figures
from kernelexp.report.document.document import Cell
from kernelexp.report.log import logbook
from kernelexp.report.site import svg
from kernelexp.report.site.svg import Tick

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


def draw(name: str, standings: Standings) -> Forest | None:
    """Draws a forest plot; None where no candidate is measured as it is now."""
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
