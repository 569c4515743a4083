"""The candidates of an experiment beside each other: change of time, its interval, the margin."""

from __future__ import annotations

from kernelexp.dossier.standing import Standings
from kernelexp.model.axes import spell_point
from kernelexp.report.charts.chart import Band, ChartAxis, Mark, Plot, Series
from kernelexp.report.document import figures

_NAME_MAX = 18
"""Letters of a candidate's axes that its place in the chart has room for."""
_WRITTEN_MAX = 3
"""Candidates whose intervals, which a dot may hide, have room in figures on a phone."""


def plot(name: str, standings: Standings) -> Plot | None:
    """None where no candidate is measured as it is now."""
    marks: list[Mark] = []
    categories: list[str] = []
    margin = 0.0
    for number, standing in enumerate(standings.candidates, 1):
        effect = standing.arm.measured.effect if standing.arm and standing.arm.measured else None
        if effect is None or standing.changed or standing.record is None:
            continue
        low, high = (effect.low, effect.high) if effect.low > 0 else (effect.ratio, effect.ratio)
        point = spell_point(standings.experiment.candidates[number - 1])
        margin = standing.record.margin
        marks.append(
            Mark(
                x=len(categories),
                y=_percent(effect.ratio),
                low=_percent(low),
                high=_percent(high),
                label=f"{point}, {figures.effect(effect)}",
                beside=figures.interval(effect)
                if len(standings.candidates) <= _WRITTEN_MAX
                else "",
            )
        )
        categories.append(point if len(point) <= _NAME_MAX else str(number))
    if not marks:
        return None
    if len(standings.candidates) == 1:
        categories = ["candidate"]
    by_number = any(category.isdigit() for category in categories)
    numbered = "; candidates are numbered as above" if by_number else ""
    arms = [candidate.arm for candidate in standings.candidates if candidate.arm]
    return Plot(
        title=f"{name}: change of {figures.compared(arms)} to the baseline",
        x=ChartAxis(label="candidate" if len(categories) > 1 else "", categories=tuple(categories)),
        y=ChartAxis(label=f"change of {figures.compared(arms)}", unit="%"),
        series=(Series(name="change", marks=tuple(marks)),),
        bands=(Band(name=f"margin ±{100 * margin:g}%", low=-100 * margin, high=100 * margin),),
        note=f"A bar is the interval{numbered}.",
    )


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)
