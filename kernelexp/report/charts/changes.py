"""Plots of changes: the pairs of a run, its candidates at each size, a kernel's committed steps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from kernelexp.dossier.standing import Standing
from kernelexp.facts import metrics
from kernelexp.judge import oversizes
from kernelexp.judge.statistics import stats
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import spell_point
from kernelexp.model.measurement import Effect, Measurement
from kernelexp.model.record import Record, final_reference, measurement_of, own_axes, unusual
from kernelexp.report.charts.chart import Band, ChartAxis, Mark, Plot, Series
from kernelexp.report.document import figures
from kernelexp.services.kernel_logs import KernelLog, time_of

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


_RATE = "published_tflops"
_MEASURED = (
    "The baseline's median times the change of the step; the bar spans the 5th to 95th percentile."
)
_PUBLISHED = "As published; a bar is a published range."


def of_history(logs: Sequence[KernelLog]) -> Iterator[Plot]:
    """Yields for each kernel its measured times by GPU, then its published ones, and published
    rates where a step has only that."""
    for log in logs:
        steps = {name: entry.candidates[0] for name, entry in log.history.items()}
        devices = dict.fromkeys(step.record.device for step in steps.values() if step.record)
        for device in filter(None, devices):
            own = {n: s for n, s in steps.items() if s.record and s.record.device == device}
            yield from _steps(log, own, "time_ms", f"measured, {device}", _MEASURED)
        yield from _steps(log, steps, "published_time_ms", "published", _PUBLISHED)
        if any(time_of(s, _RATE) and not time_of(s, "published_time_ms") for s in steps.values()):
            yield from _steps(log, steps, _RATE, "published", "As published.")


def _steps(
    log: KernelLog, steps: dict[str, Standing], metric: str, whose: str, note: str
) -> Iterator[Plot]:
    times = {name: time_of(standing, metric) for name, standing in steps.items()}
    known = {name: value for name, value in times.items() if value}
    marks = []
    for index, (name, value) in enumerate(known.items()):
        low, high = _interval(steps[name].arm, metric)
        title = log.history[name].experiment.title
        marks.append(Mark(x=index, y=value, low=low, high=high, label=title))
    quantity, unit = ("rate", "TFLOPS") if metric == _RATE else ("time", "ms")
    without = "" if len(known) == len(steps) else f" Steps without such a {quantity} are left out."
    if marks:
        yield Plot(
            title=f"{log.kernel}, {log.arch}: {quantity} of committed steps, {whose}",
            x=ChartAxis(label="commit", categories=tuple(known), ordered=True),
            y=ChartAxis(label=quantity, unit=unit),
            series=(Series(name=whose, marks=tuple(marks)),),
            note=f"{note}{without}",
        )


def _interval(arm: Arm | None, metric: str) -> tuple[float | None, float | None]:
    if arm is None:
        return None, None
    measured = arm.measured
    if metric == "time_ms" and measured and measured.low_us and measured.high_us:
        return measured.low_us / 1000, measured.high_us / 1000
    to = metrics.read("published_time_ms_to", arm)
    low = metrics.read("published_time_ms", arm)
    if metric != _RATE and isinstance(to, float) and isinstance(low, float):
        return low, to
    return None, None
