"""The times of a kernel's committed steps: a plot for each source of times.

Times of different GPUs, and measured and published ones, never share an axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.dossier.standing import Standing
from kernelexp.facts import metrics
from kernelexp.model.arm import Arm
from kernelexp.report.charts.chart import ChartAxis, Mark, Plot, Series
from kernelexp.services.kernel_logs import KernelLog, time_of

_RATE = "published_tflops"
_MEASURED = (
    "The baseline's median times the change of the step; the bar spans the 5th to 95th percentile."
)
_PUBLISHED = "As published; a bar is a published range."


def plots(logs: Sequence[KernelLog]) -> Iterator[Plot]:
    """Yields for each kernel its measured times by GPU, then its published ones, and published
    rates where a step has only that."""
    for log in logs:
        steps = {name: entry.candidates[0] for name, entry in log.history.items()}
        devices = dict.fromkeys(step.record.device for step in steps.values() if step.record)
        for device in filter(None, devices):
            own = {n: s for n, s in steps.items() if s.record and s.record.device == device}
            yield from _plot(log, own, "time_ms", f"measured, {device}", _MEASURED)
        yield from _plot(log, steps, "published_time_ms", "published", _PUBLISHED)
        if any(time_of(s, _RATE) and not time_of(s, "published_time_ms") for s in steps.values()):
            yield from _plot(log, steps, _RATE, "published", "As published.")


def _plot(
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
