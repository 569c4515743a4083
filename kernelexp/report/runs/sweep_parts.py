"""Parts of a page of a sweep: how its variants were chosen, and what each axis does to the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernelexp.facts import metrics
from kernelexp.facts.modelled_errors import ERRORS
from kernelexp.judge import sweeps
from kernelexp.judge.statistics import plateau as plateaus
from kernelexp.judge.statistics.plateau import AxisEffect, AxisFinding, Plateau
from kernelexp.judge.statistics.racing import RaceResult
from kernelexp.judge.sweeps import Swept
from kernelexp.model.experiment import spell, spell_point
from kernelexp.model.measurement import Effect
from kernelexp.model.record import Record, Tuning, swept_axes
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Heading, Span, paragraph, table

if TYPE_CHECKING:
    from kernelexp.services.run.sweep import Grid

_SPREADS = 5
DEPENDS = "depends"


def render(axes: Sequence[AxisFinding], compared: str, margin: float) -> Block:
    """Tabulates the effect on the time of changing each axis from its best value to the others."""
    rows: list[tuple[Cell, ...]] = []
    for axis in axes:
        for number, effect in enumerate(axis.shown()):
            values = f"{effect.before} → {effect.after}"
            name = "" if number else axis.axis
            rows.append((name, values, _change(effect), _finding(effect, margin)))
    return table(
        ("axis", "values", f"change of {compared}", "difference"),
        rows,
        numbers=(2,),
        unwrapped=(3,),
    )


def depending(record: Record, axes: Sequence[AxisFinding]) -> Iterator[Block]:
    """Values that are better with some values of the other axes and worse with others."""
    arms = {name: arm for name, arm in record.by_name.items() if arm.measured}
    for effect in (effect for axis in axes for effect in axis.shown()):
        if _finding(effect, record.margin) != DEPENDS:
            continue
        ends = []
        for pair in (effect.least, effect.most):
            others = [
                axis
                for axis in swept_axes(record)
                if axis != effect.axis and len({spell(arm.axes[axis]) for arm in arms.values()}) > 1
            ]
            point = spell_point({axis: arms[pair.before].axes[axis] for axis in others})
            ends.append(f"{_factor(pair.change)} with {point}")
        yield paragraph(
            f"{effect.axis} {effect.before} → {effect.after} depends on the other axes: from "
            f"{' to '.join(ends)}."
        )


def _change(effect: AxisEffect) -> str:
    """The change with its interval, as factors where it is large."""
    change = effect.change
    return f"{_factor(change.center)} ({_factor(change.low)} to {_factor(change.high)})"


def _factor(log_ratio: float) -> str:
    return _ratio(math.exp(min(log_ratio, 50.0)))


def change(effect: Effect | None) -> str:
    """A change of time as it is printed: -1.24%, 60x; empty for none."""
    return _ratio(effect.printed[0]) if effect else ""


def _ratio(value: float) -> str:
    if value < 2.0:
        return figures.percent(value)
    return f"{value:.1f}x" if value < 9.95 else f"{value:.0f}x" if value < 1e4 else "over 10000x"


def _finding(effect: AxisEffect, margin: float) -> Cell:
    """Classifies one pair of values: it matters where the interval of its own change leaves out
    zero, and has one direction only where it is that of each pair of variants."""
    if effect.bound <= margin:
        return f"{100 * effect.bound:.2f}% at most"
    if effect.depends(margin):
        return DEPENDS
    return Span("matters", "strong") if effect.is_proved else "not settled"


def counted(flat: plateaus.CountedPlateau) -> Iterator[Block]:
    """Yields conclusions from the counts of variants that nothing timed."""
    if flat.is_likely:
        yield paragraph(
            Span("Plateau, as far as counts tell: ", "strong"),
            f"the {flat.variants} variants do the same work; if the time depends on what was "
            "counted, no axis here changes it.",
        )
    alike = [
        f"{figure.metric.label.strip()} {figures.value(figure.value)}" for figure in flat.shared
    ]
    if flat.same_code:
        some = f"{flat.same_code} of the {flat.variants} have"
        who = f"Each of the {flat.variants} has" if flat.same_code == flat.variants else some
        yield paragraph(f"{who} the same SASS as another of them.", indent=2)
    if alike:
        yield paragraph(f"Counted alike in all: {'; '.join(alike)}.", indent=2)
    if flat.spreads:
        most = list(flat.spreads.items())[:_SPREADS]
        words = [f"{label} by {_spread(spread)}" for label, spread in most]
        yield paragraph(f"Counts that differ: {', '.join(words)}.", indent=2)
        yield paragraph(f"What an axis alone changes most: {_moved(flat.axes)}.", indent=2)
        idle = [axis for axis, (_, most) in flat.axes.items() if most <= plateaus.ALIKE]
        if idle and not flat.is_likely:
            change = "changes" if len(idle) == 1 else "change"
            yield paragraph(
                Span("Plateau, as far as counts tell: ", "strong"),
                f"{', '.join(idle)} {change} no count by more than {100 * plateaus.ALIKE:g}%.",
                indent=2,
            )


def _moved(axes: Mapping[str, tuple[str, float]]) -> str:
    ordered = sorted(axes.items(), key=lambda item: -item[1][1])
    return "; ".join(
        f"{axis} {label} by {_spread(most)}" if most else f"{axis} no count"
        for axis, (label, most) in ordered
    )


def _spread(share: float) -> str:
    return "any factor" if math.isinf(share) else f"{100 * share:.1f}%"


def plateau(record: Record, race: RaceResult, flat: Plateau) -> Iterator[Block]:
    """A paragraph on variants that do not differ, and what may limit them all."""
    count = 1 + len(race.behind)
    margin = f"{100 * record.margin:g}%"
    seen = f"none of the {count} variants differs from the fastest by more than {margin}"
    if flat.widest > record.margin:
        seen = (
            f"no axis changes the time by more than {margin} on average, and none of the {count} "
            f"variants was told apart from the fastest ({100 * flat.widest:.1f}% at most)"
        )
    yield paragraph(
        Span("Plateau: ", "strong"), f"{seen}: what limits the kernel depends on no axis here."
    )
    known = metrics.figures(record.arms[record.names.index(race.leader)])
    words = [
        f"{known[name].metric.label.strip()} {figures.value(value, known[name].metric.unit)}"
        for name, value in flat.shared.items()
    ]
    if flat.same_code:
        words.insert(0, f"{flat.same_code} of them have the same SASS as another")
    if words:
        yield paragraph(f"What they share: {'; '.join(words)}.", indent=2)
    if flat.hot_line:
        yield paragraph(f"In each, most bank conflicts are of {flat.hot_line}.", indent=2)
    if flat.differing:
        yield paragraph(f"What differs without effect: {', '.join(flat.differing)}.", indent=2)
    if not any(arm.emulated for arm in record.arms):
        yield paragraph(
            "--emulate counts barriers, wavefronts and bank conflicts too.", style="dim", indent=2
        )


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
