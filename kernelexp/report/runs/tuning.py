"""Parts of a search's page: its plan, its trials, and its best by a figure other than time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kernelexp.facts import metrics
from kernelexp.facts.modelled_errors import ERRORS
from kernelexp.judge import sweeps
from kernelexp.judge.sweeps import Swept
from kernelexp.model.record import Record, Tuning
from kernelexp.model.spelling import spell_point
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Heading, Span, paragraph

if TYPE_CHECKING:
    from kernelexp.services.run.sweep import Grid


def heading(swept: Record | Grid) -> str:
    """Names the kernel and what was swept: `Sweep of gemm, sm_90a: stages=3,4`."""
    return f"Sweep of {swept.kernel}, {swept.arch}: {swept.title.removeprefix('Sweep of ')}"


def planned(grid: Grid, trials: int, strategy: str) -> Iterator[Block]:
    """Yields the plan of a search."""
    yield Heading(heading(grid))
    base = spell_point({axis: grid.baseline.axes[axis] for axis in grid.swept})
    yield paragraph(
        f"Up to {trials} of {grid.size:,} variants, proposed by {strategy}, compared with {base}."
    )


def summary(record: Record, examined: Swept, tuning: Tuning, label: str) -> Iterator[Block]:
    """Says how the variants were chosen, and names the best by a figure that is not a time."""
    refused = sum(trial.value is None for trial in tuning.trials)
    by = "" if record.measurement else f" by {tuning.objective}"
    if tuning.objective == metrics.MODELLED.name:
        by = f" by modelled times (off by {ERRORS.mean:.0%} on {ERRORS.times} measured ones)"
    yield paragraph(
        f"{len(tuning.trials)} of {tuning.space:,} variants were tried{by}, {refused} of them "
        f"refused; proposed by {tuning.strategy} ({tuning.optimizer}, seed {tuning.seed}). "
        f"{tuning.ended}"
    )
    if record.measurement is None:
        _, value, base = best(record, examined)
        yield paragraph(
            Span(f"Best: {label}", "good"),
            f" with {figures.value(value)}; the baseline has {figures.value(base)}.",
        )


def best(record: Record, examined: Swept) -> tuple[str, metrics.Value | None, Any]:
    """The best arm of a search by a figure that is not a time, that figure, and the baseline's."""
    metric = metrics.searchable(record.tuning.objective) if record.tuning else None
    name = record.names[examined.ranking[0]]
    if metric is None:
        return name, None, None
    return name, value_of(record, name), value_of(record, "baseline")


def value_of(record: Record, name: str) -> metrics.Value | None:
    """The figure that an arm was searched by."""
    metric = metrics.searchable(record.tuning.objective) if record.tuning else None
    if metric is None:
        return None
    if metric is metrics.MODELLED:
        return sweeps.objective(record).get(name)
    return metric.read(record.by_name[name])


def metric_of(record: Record) -> metrics.Metric | None:
    """The figure that was searched by, where no other column has it."""
    name = record.tuning.objective if record.tuning and not record.measurement else ""
    shown = ("launch__registers_per_thread", "")
    return None if name in shown else metrics.searchable(name)


def compared(record: Record) -> str:
    """Names the figure of the front besides registers and shared memory."""
    if record.measurement:
        return "time, "
    metric = metric_of(record)
    return f"{metric.label}, " if metric else ""
