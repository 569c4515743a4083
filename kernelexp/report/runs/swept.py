"""A sweep's record as CSV, and the plan of a sweep."""

from __future__ import annotations

import csv
import io
import math

import msgspec

from kernelexp.facts import metrics
from kernelexp.judge import sweeps
from kernelexp.judge.statistics.racing import RaceResult
from kernelexp.model.arm import Verdict
from kernelexp.model.record import Record
from kernelexp.model.spelling import spell
from kernelexp.model.text import printable
from kernelexp.services.run.sweep import Grid, TimingEstimate


class PlannedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """The variants that a sweep would compare; a search's refusals are not known before."""

    sweep: Grid
    sizes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    refused: dict[str, Verdict] | msgspec.UnsetType = msgspec.UNSET
    timing: TimingEstimate | msgspec.UnsetType | None = msgspec.UNSET
    """None where no run of this kernel was timed here."""


def to_csv(record: Record) -> str:
    """A row per arm in the order of the ranking: its axes, verdict and figures."""
    examined = sweeps.examine(record)
    axes = list(record.baseline.axes)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    further = sorted({key for arm in record.arms for key in metrics.printed(arm)})
    writer.writerow(
        ["row", "arm", "kernel", "arch", "run", *axes, "verdict", "reason", "front",
         "behind_low_percent", "behind_high_percent", *metrics.METRICS, *further]
    )  # fmt: skip
    for row in examined.ranking:
        arm, name = record.arms[row], record.names[row]
        decided = record.candidates[row - 1].verdict if row else None
        values = (metric.read(arm) for metric in metrics.METRICS.values())
        figures = ("" if value is None else value for value in values)
        writer.writerow(
            [
                row, name, record.kernel, record.arch, record.run,
                *(spell(arm.axes[axis]) for axis in axes),
                decided.status.value if decided else "", decided.reason if decided else "",
                int(row in examined.front), *_behind(examined.race, name), *figures,
                *(metrics.printed(arm).get(key, "") for key in further),
            ]
        )  # fmt: skip
    return printable(file.getvalue())


def _behind(race: RaceResult | None, name: str) -> tuple[float | str, float | str]:
    if race is None or name not in race.behind:
        return "", ""
    own = race.behind[name]
    low, high = (round(100 * math.expm1(min(value, 50.0)), 4) for value in (own.low, own.high))
    return low, high
