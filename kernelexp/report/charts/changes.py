"""Plots of a run's changes: its pairs one by one, and each candidate at each size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from kernelexp.judge import oversizes
from kernelexp.judge.statistics import stats
from kernelexp.model.measurement import Effect, Measurement
from kernelexp.model.record import Record, final_reference, measurement_of, own_axes, unusual
from kernelexp.model.spelling import spell_point
from kernelexp.report.charts.chart import Band, ChartAxis, Mark, Plot, Series
from kernelexp.report.document import figures

_MOST = 4
"""Candidates that are told apart in one chart."""


def of_sizes(record: Record) -> Iterator[Plot]:
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


DOTS_MAX = 400
"""Pairs that are drawn; of more, every n-th."""


def of_pairs(record: Record) -> Iterator[Plot]:
    """A plot for each candidate that was timed."""
    reference = final_reference(record)
    for name, candidate in record.judged.items():
        effect, timed = candidate.arm.effect, measurement_of(record, name)
        base = timed.position("baseline") if timed else None
        if timed is None or base is None or effect is None:
            continue
        if timed is not record.measurement and not reference:
            continue  # what a heat sent away
        if reference:
            effect = next(item for item in stats.ratios(timed)[0] if item.arm == name)
        own = spell_point(own_axes(record.baseline, candidate.arm))
        what = f"change of {figures.compared(record.arms)}"
        where = "".join(f", {condition}" for condition in unusual(record))
        title = f"{record.experiment}, {own}{where}: {what} in each pair"
        arm = [one.name for one in timed.arms].index(name)
        yield _pairs(timed, arm, base, effect, record.margin, (title, what))


def _pairs(
    timed: Measurement,
    arm: int,
    base: int,
    effect: Effect,
    margin: float,
    words: tuple[str, str],
) -> Plot:
    """`words` are the title, and what the pairs show."""
    dots, medians, start = [], [], 0
    for worker in timed.workers:
        kept, _ = stats.log_ratios(worker.blocks, arm, base)
        if len(kept) < 2:  # as in stats.clustered()
            continue
        dots += [(start + place, ratio) for place, ratio in enumerate(kept)]
        low, *_, high = statistics.quantiles(kept, n=20)
        medians.append(
            Mark(
                x=start + (len(kept) - 1) / 2,
                y=_percent(statistics.median(kept)),
                low=_percent(low),
                high=_percent(high),
                label=f"process {worker.process}",
            )
        )
        start += len(kept)
    step = -(-len(dots) // DOTS_MAX) or 1
    marks = tuple(Mark(x=place, y=_percent(ratio)) for place, ratio in dots[::step])
    every = "Every pair" if step == 1 else f"One in {step} of {len(dots):,} pairs"
    return Plot(
        title=words[0],
        x=ChartAxis(label="pair, in the order of the processes"),
        y=ChartAxis(label=words[1], unit="%"),
        series=(
            Series(name=every[0].lower() + every[1:], marks=marks, look="dots"),
            Series(name="median of a process", marks=tuple(medians)),
        ),
        bands=(
            Band(name=f"margin ±{100 * margin:g}%", low=-100 * margin, high=100 * margin),
            *_band(effect),
        ),
        note=f"{every}; with each process's median its 5th to 95th percentile. "
        f"Change {figures.effect(effect)}.",
    )


def _band(effect: Effect) -> Iterator[Band]:
    """The interval; one process gives none."""
    if effect.low > 0:
        low, high = (100 * (item - 1) for item in (effect.low, effect.high))
        yield Band(name=f"{100 * effect.level:g}% interval", low=low, high=high)


def _percent(log_ratio: float) -> float:
    return 100 * math.expm1(min(log_ratio, 50.0))
