"""A sweep's record with what it comes to, as JSON and CSV, and the plan of a sweep."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator

import msgspec

from kernelexp.facts import metrics
from kernelexp.judge import sweeps
from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.plateau import AxisFinding, Plateau
from kernelexp.judge.sweeps import SweepResults
from kernelexp.model.arm import Arm, Verdict
from kernelexp.model.axes import spell
from kernelexp.model.record import Record
from kernelexp.model.text import printable
from kernelexp.services.run.sweep import Grid, TimingEstimate


class SweptPlateau(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that make no difference, and what they have in common."""

    widest: float
    shared: dict[str, metrics.Value]
    differing: tuple[str, ...]
    same_code: int
    hot_line: str


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's record with what it comes to; rows are positions of its arms."""

    record: Record
    ranking: tuple[int, ...]
    front: tuple[int, ...]
    race: racing.RaceResult | None
    axes: tuple[AxisFinding, ...]
    plateau: SweptPlateau | None
    path: str | msgspec.UnsetType | None = msgspec.UNSET
    """The record's file, where the sweep has just run; None where none was written."""


class PlannedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """The variants that a sweep would compare; a search's refusals are not known before."""

    sweep: Grid
    sizes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    refused: dict[str, Verdict] | msgspec.UnsetType = msgspec.UNSET
    timing: TimingEstimate | msgspec.UnsetType | None = msgspec.UNSET
    """None where no run of this kernel was timed here."""


def to_values(record: Record) -> Swept:
    """The record with what it comes to, for programs."""
    examined = sweeps.examine(record)
    return Swept(
        record=record,
        ranking=tuple(int(sweeps.row_of(record, name)) for name in examined.ranking),
        front=tuple(int(sweeps.row_of(record, name)) for name in examined.front),
        race=examined.race,
        axes=examined.axes,
        plateau=_plain(examined.plateau) if examined.plateau else None,
    )


def _plain(flat: Plateau) -> SweptPlateau:
    return SweptPlateau(
        widest=flat.widest,
        shared={figure.metric.name: figure.value for figure in flat.shared},
        differing=flat.differing,
        same_code=flat.same_code,
        hot_line=flat.hot_line,
    )


def to_csv(record: Record) -> str:
    """A row per arm in the order of the ranking: its axes, verdict and figures."""
    examined = sweeps.examine(record)
    arms = dict(zip(record.names, record.arms, strict=True))
    words = dict(zip(record.names[1:], record.candidates, strict=True))
    axes = list(record.baseline.axes)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    further = sorted({key for arm in record.arms for key in metrics.printed(arm)})
    writer.writerow(
        ["row", "arm", "kernel", "arch", "run", *axes, "verdict", "reason", "front",
         "behind_low_percent", "behind_high_percent", *metrics.METRICS, *further]
    )  # fmt: skip
    for name in examined.ranking:
        arm = arms[name]
        decided = words[name].verdict if name in words else None
        writer.writerow(
            [
                sweeps.row_of(record, name), name, record.kernel, record.arch, record.run,
                *(spell(arm.axes[axis]) for axis in axes),
                decided.status.value if decided else "", decided.reason if decided else "",
                int(name in examined.front), *_behind(examined, name), *_figures(arm),
                *(metrics.printed(arm).get(key, "") for key in further),
            ]
        )  # fmt: skip
    return printable(file.getvalue())


def _behind(examined: SweepResults, name: str) -> tuple[float | str, float | str]:
    race = examined.race
    if race is None or name not in race.behind:
        return "", ""
    own = race.behind[name]
    low, high = (round(100 * math.expm1(min(value, 50.0)), 4) for value in (own.low, own.high))
    return low, high


def _figures(arm: Arm) -> Iterator[metrics.Value | str]:
    for metric in metrics.METRICS.values():
        value = metric.read(arm)
        yield "" if value is None else value
