"""The first page's table: a row for each candidate, with the very figures of `log --json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kernelexp.model.arm import Status
from kernelexp.report.document import document, figures
from kernelexp.report.document.document import Cell, Span
from kernelexp.report.log.logbook import CHANGED, NOT_RUN

NUMBERS: dict[str, str] = {
    "time_ms": "Time, ms",
    "change_percent": "Change, %",
    "launch__registers_per_thread": "Registers",
    "published_time_ms": "Published",
}
"""The figures that the table shows, by their names in `log --json`."""
ROWS_SHOWN = 200
"""Until all are asked for: Chromium lays 1,000 out in 120 ms of CPU time, after each key."""


class CandidateRow(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of a step of the history, or of an experiment."""

    kernel: str
    """With its architecture."""
    section: str
    arm: dict[str, Any]
    """Its row in `log --json`."""
    verdict: Cell
    numbers: dict[str, str]
    """The figures of NUMBERS as they are written."""


def rows(values: Iterable[dict[str, Any]]) -> Iterator[CandidateRow]:
    """A row for each candidate of what a KernelLog.logged() gives."""
    for log in values:
        for section, entries in (("step", "history"), ("experiment", "experiments")):
            for arm in (arm for entry in log[entries] for arm in entry["arms"]):
                if arm["arm"] == "candidate":
                    yield CandidateRow(
                        kernel=f"{log['kernel']}@{log['arch']}",
                        section=section,
                        arm=arm,
                        verdict=_verdict(arm),
                        numbers={name: _text(name, arm) for name in NUMBERS},
                    )


def _verdict(arm: dict[str, Any]) -> Cell:
    if arm["verdict"]:
        return document.status(Status(arm["verdict"]))
    return Span(CHANGED, "warn") if arm["changed_since"] else NOT_RUN


def _text(name: str, arm: dict[str, Any]) -> str:
    if name == "published_time_ms":
        return _published(arm)
    value = arm.get(name)
    if value is None:
        return figures.NONE
    if name == "change_percent":
        return figures.percent(1 + value / 100)
    return figures.time_ms(value) if name == "time_ms" else figures.value(value)


def _published(arm: dict[str, Any]) -> str:
    """All that was published of it: "~0.722 ms, 1,516 TFLOPS, 222 registers"."""
    parts = []
    if time := arm.get("published_time_ms"):
        to = arm.get("published_time_ms_to")
        parts = [f"{figures.time_ms(time)}{f' to {figures.time_ms(to)}' if to else ''} ms"]
    for name, unit in (("published_tflops", "TFLOPS"), ("published_registers", "registers")):
        if arm.get(name) is not None:
            parts.append(figures.value(arm[name], unit))
    tilde = "~" if parts and arm["published_approximate"] else ""
    return tilde + (", ".join(parts) or figures.NONE)


def used(rows: Sequence[CandidateRow]) -> dict[str, str]:
    """The headings of the figures that at least one row has."""
    return {
        name: label
        for name, label in NUMBERS.items()
        if any(row.numbers[name] != figures.NONE for row in rows)
    }
