"""Charts of each candidate's change at each size of a run."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.judge import oversizes
from kernelexp.model.record import Record, own_axes
from kernelexp.model.spelling import spell_point
from kernelexp.report.charts.chart import Band, ChartAxis, Mark, Plot, Series
from kernelexp.report.document import figures

_MOST = 4
"""Candidates that are told apart in one chart."""


def plots(record: Record) -> Iterator[Plot]:
    """The change at each size; nothing where one size was timed. Of many candidates, those that are
    the best somewhere."""
    results = oversizes.ordered(record.sizes)
    names = list(record.names[1:])
    if len(names) > _MOST:
        names = list(dict.fromkeys(filter(None, map(oversizes.best, results))))[:_MOST]
    arms = record.by_name
    series = []
    for name in names:
        marks = tuple(
            Mark(
                x=place,
                y=100 * (effect.ratio - 1),
                low=100 * (effect.low - 1),
                high=100 * (effect.high - 1),
                label=f"{result.size}, {figures.effect(effect)}",
            )
            for place, result in enumerate(results)
            if (effect := result.effect(name)) is not None
        )
        title = spell_point(own_axes(record.baseline, arms[name]))
        series += [Series(name=title, marks=marks)] if marks else []
    if series and results:
        parameter = oversizes.varied(record.sizes)
        compared = f"change of {figures.compared(record.arms)}"
        yield Plot(
            title=f"{record.experiment}: {compared} to the baseline, by size",
            x=ChartAxis(
                label=parameter or "size",
                categories=tuple(
                    f"{result.parameters[parameter]:,}" if parameter else result.size
                    for result in results
                ),
                ordered=True,
            ),
            y=ChartAxis(label=compared, unit="%"),
            series=tuple(series),
            bands=(
                Band(
                    name=f"margin ±{100 * record.margin:g}%",
                    low=-100 * record.margin,
                    high=100 * record.margin,
                ),
            ),
            note="A bar is the interval.",
        )
