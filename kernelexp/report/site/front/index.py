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


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """A figure as it is written, and as it is."""

    name: str
    value: float | None
    text: str


class CandidateRow(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of a step of the history, or of an experiment."""

    id: str
    kernel: str
    """With its architecture."""
    section: str
    title: str
    variant: str
    date: str
    verdict: Cell
    numbers: tuple[Number, ...]


def rows(values: Iterable[dict[str, Any]]) -> Iterator[CandidateRow]:
    """A row for each candidate of what a KernelLog.logged() gives."""
    for log in values:
        for section in ("history", "experiments"):
            for entry in log[section]:
                for arm in entry["arms"]:
                    if arm["arm"] == "candidate":
                        yield _row(f"{log['kernel']}@{log['arch']}", section, arm)


def _row(kernel: str, section: str, arm: dict[str, Any]) -> CandidateRow:
    return CandidateRow(
        id=arm["id"],
        kernel=kernel,
        section="step" if section == "history" else "experiment",
        title=arm["title"],
        variant=arm["variant"],
        date=arm["date"],
        verdict=_verdict(arm),
        numbers=tuple(
            Number(name=name, value=arm.get(name), text=_text(name, arm)) for name in NUMBERS
        ),
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
    if name == "time_ms":
        return figures.time_ms(value)
    return figures.value(value)


def _published(arm: dict[str, Any]) -> str:
    """All that was published of it: "~0.722 ms, 1,516 TFLOPS, 222 registers"."""
    time, to = arm.get("published_time_ms"), arm.get("published_time_ms_to")
    parts = (
        [f"{figures.time_ms(time)}{f' to {figures.time_ms(to)}' if to else ''} ms"] if time else []
    )
    for name, unit in (("published_tflops", "TFLOPS"), ("published_registers", "registers")):
        if arm.get(name) is not None:
            parts.append(figures.value(arm[name], unit))
    line = ", ".join(parts) or figures.NONE
    return f"~{line}" if parts and arm["published_approximate"] else line


def used(rows: Sequence[CandidateRow]) -> dict[str, str]:
    """The headings of the figures that at least one row has."""
    return {
        name: label
        for place, (name, label) in enumerate(NUMBERS.items())
        if any(row.numbers[place].text != figures.NONE for row in rows)
    }
