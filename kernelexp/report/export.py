"""The log and sweeps as CSV, with every fixed figure by its name."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kernelexp.facts import metrics
from kernelexp.judge import sweeps
from kernelexp.judge.statistics.racing import RaceResult
from kernelexp.model.experiment import spell
from kernelexp.model.record import Record
from kernelexp.model.text import printable
from kernelexp.services.kernel_logs import Logged, LoggedArm, LoggedExperiment, LoggedSweep

COLUMNS = (
    *("kernel", "arch", "section"),
    *(name for name in LoggedArm.__struct_fields__ if name != "printed"),
    *metrics.METRICS,
)


def log(logs: Sequence[Logged]) -> str:
    """A line for each arm of each step of the history, of each experiment and of each sweep.

    Figures and verdicts of variants that have changed since are left out. What programs print has
    columns of its own, the last ones.
    """
    rows = [
        {"kernel": log.kernel, "arch": log.arch, "section": section, **row}
        for log in logs
        for section, row in _rows(log)
    ]
    further = sorted({key for row in rows for key in row}.difference(COLUMNS))
    text = io.StringIO()
    writer = csv.DictWriter(text, (*COLUMNS, *further), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        row = {key: "; ".join(x) if key.endswith("_since") else x for key, x in row.items()}
        writer.writerow({k: printable(v) if isinstance(v, str) else v for k, v in row.items()})
    return text.getvalue()


def _rows(log: Logged) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with its section."""
    entries: dict[str, tuple[LoggedExperiment | LoggedSweep, ...]]
    entries = {"history": log.history, "experiment": log.experiments, "sweep": log.sweeps}
    for section, several in entries.items():
        for arm in (arm for entry in several for arm in entry.arms):
            row = msgspec.to_builtins(arm)
            yield section, {**row, **row.pop("printed", {})}


def sweep(record: Record) -> str:
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
