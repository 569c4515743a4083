"""The log as CSV, with every fixed figure by its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kernelexp.facts import metrics
from kernelexp.model.text import printable
from kernelexp.services.kernel_logs import Logged, LoggedExperiment, LoggedSweep

COLUMNS = (
    "kernel",
    "arch",
    "section",
    "id",
    "title",
    "arm",
    "variant",
    "date",
    "run",
    "provenance",
    "device",
    "size",
    "l2",
    "verdict",
    "decision",
    "changed_since",
    "published_approximate",
    *metrics.METRICS,
)


def to_csv(logs: Sequence[Logged]) -> str:
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
        row = {**row, "changed_since": "; ".join(row["changed_since"])}
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
