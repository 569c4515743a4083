"""The log for programs: CSV and plain values for JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kernelexp.model import PublishedResult
from kernelexp.report.log import Figures, KernelLog

COLUMNS = (
    "kernel",
    "arch",
    "section",
    "id",
    "title",
    "arm",
    "variant",
    "provenance",
    "device",
    "time_ms",
    "time_ms_to",
    "tflops",
    "registers",
    "approximate",
    "verdict",
)


def to_values(logs: Sequence[KernelLog]) -> Any:
    """Lists and mappings, ready for JSON."""
    return msgspec.to_builtins(logs)


def to_csv(logs: Sequence[KernelLog]) -> str:
    """A line for each step of the history, and for each arm of each experiment."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for log in logs:
        for row in _rows(log):
            writer.writerow((log.kernel, log.arch, *row))
    return text.getvalue()


def _rows(log: KernelLog) -> Iterator[tuple[object, ...]]:
    for step in log.history:
        cells = _cells(step.figures, step.provenance, step.device)
        yield ("history", step.commit, step.change, "candidate", *cells, "")
    for entry in log.experiments:
        start = ("experiment", entry.id, entry.experiment.title)
        yield (*start, "baseline", *_cells(entry.baseline, entry.provenance, entry.device), "")
        for index, arm in enumerate(entry.candidates):
            status = entry.verdicts[index].status.value if entry.verdicts else ""
            yield (*start, "candidate", *_cells(arm, entry.provenance, entry.device), status)


def _cells(arm: Figures, provenance: str | None, device: str) -> tuple[object, ...]:
    published: PublishedResult = arm.published
    return (
        arm.variant,
        provenance or "",
        device,
        published.time_ms,
        published.time_ms_to,
        published.tflops,
        published.registers,
        "yes" if published.approximate else "",
    )
