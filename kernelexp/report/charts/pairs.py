"""The paired ratios of a run: every pair, the median of each process, interval and margin."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from kernelexp.judge.statistics import stats
from kernelexp.model.measurement import Effect, Measurement
from kernelexp.model.record import Record, final_reference, measurement_of, own_axes, unusual
from kernelexp.model.spelling import spell_point
from kernelexp.report.charts.chart import Band, ChartAxis, Mark, Plot, Series
from kernelexp.report.document import figures

DOTS_MAX = 400
"""Pairs that are drawn; of more, every n-th."""


def plots(record: Record) -> Iterator[Plot]:
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
        yield _plot(timed, arm, base, effect, record.margin, (title, what))


def _plot(
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
