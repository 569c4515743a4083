"""Results of a sweep's record: ranking, race, effects of axes, plateau, front."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from kernelexp.facts import metrics
from kernelexp.facts.metrics import summarize
from kernelexp.judge.statistics import plateau as plateaus
from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.stats import LEVEL, share_of_look
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Point
from kernelexp.model.record import Record


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's record with what it comes to; rows are positions of its arms."""

    record: Record
    ranking: tuple[int, ...]
    """All rows, the fastest first, then those that were not timed."""
    front: tuple[int, ...]
    """Those that none beats in time, registers and shared memory at once."""
    race: racing.RaceResult | None
    axes: tuple[plateaus.AxisFinding, ...]
    plateau: plateaus.Plateau | None
    path: str | msgspec.UnsetType | None = msgspec.UNSET
    """The record's file, where the sweep has just run; None where none was written."""


def objective(record: Record) -> dict[str, float]:
    """The objective of each arm of a search by another figure than the time: less is better."""
    tuning = record.tuning
    if tuning is None or record.measurement is not None:
        return {}
    sign = 1.0 if tuning.better == "less" else -1.0
    values = {
        trial.arm: trial.value for trial in tuning.trials if trial.arm and trial.value is not None
    }
    metric = metrics.searchable(tuning.objective)
    base = metric.read(record.baseline) if metric else None
    base = base if tuning.baseline is None else tuning.baseline
    if isinstance(base, int | float):
        values["baseline"] = float(base)
    return {name: sign * value for name, value in values.items()}


def examine(record: Record) -> Swept:
    """All that a sweep's record says, worked out from its samples and its evidence."""
    arms = dict(zip(record.names, record.arms, strict=True))
    timed = record.measurement
    race = racing.result(timed, record.margin) if timed else None
    values = objective(record) or _ratios(arms)
    # Pairs of variants that were timed side by side: heats tear them apart.
    axes = _axes(record, arms, race) if race and not record.heats else ()
    costs = {
        name: Cost(time=values.get(name), resources=_resources(arm))
        for name, arm in arms.items()
        if arm.is_built and not arm.refused and (name in values or not values)
    }
    ranking = sorted(arms, key=lambda name: values.get(name, math.inf))
    return Swept(
        record=record,
        ranking=tuple(map(record.names.index, ranking)),
        front=tuple(map(record.names.index, front(costs, record.margin))),
        race=race,
        axes=axes,
        plateau=plateaus.plateau(race, axes, arms, record.margin) if race and axes else None,
    )


def _ratios(arms: Mapping[str, Arm]) -> dict[str, float]:
    """Each timed arm's ratio to the baseline: times of arms that left early are of another hour."""
    return {
        name: arm.measured.effect.ratio if arm.measured.effect else 1.0
        for name, arm in arms.items()
        if arm.measured and (arm.measured.effect or name == "baseline")
    }


def _resources(arm: Arm) -> tuple[int, ...]:
    summary = summarize(arm)
    return summary["registers"], summary["smem_bytes"]


def _axes(
    record: Record, arms: Mapping[str, Arm], race: racing.RaceResult
) -> tuple[plateaus.AxisFinding, ...]:
    timed = record.measurement
    if timed is None:
        return ()
    points: dict[str, Point] = {name: arm.axes for name, arm in arms.items() if arm.measured}
    risk = (1.0 - LEVEL) * share_of_look(len(timed.looks), timed.options.race)
    return plateaus.findings(racing.scores(timed), points, risk, record.margin, race)


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a variant; less of each is better."""

    time: float | None
    """Of any unit; None where nothing was timed: then resources decide alone."""
    resources: tuple[int, ...]


def front(costs: Mapping[str, Cost], margin: float) -> tuple[str, ...]:
    """The names that are not dominated, in their order.

    A time counts as shorter only beyond the margin, so that noise neither wins nor loses a place.
    """
    return tuple(
        name
        for name, own in costs.items()
        if not any(_dominates(other, own, margin) for other in costs.values())
    )


def _dominates(one: Cost, other: Cost, margin: float) -> bool:
    """Whether `one` is no worse in anything and better in something."""
    pairs = list(zip(one.resources, other.resources, strict=True))
    if any(mine > others for mine, others in pairs):
        return False
    cheaper = any(mine < others for mine, others in pairs)
    if one.time is None or other.time is None:
        return cheaper and one.time is other.time
    is_faster = one.time * (1.0 + margin) < other.time
    is_slower = one.time > other.time * (1.0 + margin)
    return not is_slower and (cheaper or is_faster)
