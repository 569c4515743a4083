"""The log for programs: CSV and plain values for JSON, with every fixed figure by its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from kernelexp import metrics
from kernelexp.arm import Arm
from kernelexp.judge.standing import Standing, Standings
from kernelexp.model import spell_point
from kernelexp.report.log import KernelLog
from kernelexp.text import printable

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
    "verdict",
    "decision",
    "changed_since",
    "published_approximate",
    *metrics.METRICS,
)


def to_values(logs: Sequence[KernelLog]) -> list[dict[str, Any]]:
    """Each kernel's log with the rows of the CSV, ready for JSON; a figure that is not there is
    left out."""
    return [
        {
            "kernel": log.kernel,
            "arch": log.arch,
            "title": log.title,
            "problem": log.problem,
            "device": log.device,
            "best": log.best,
            "history": _section(log.history),
            "experiments": _section(log.experiments),
        }
        for log in logs
    ]


def _section(entries: dict[str, Standings]) -> list[dict[str, Any]]:
    return [
        {"id": name, "experiment": entry.experiment, "records": entry.records, "arms": arms}
        for name, entry in entries.items()
        if (arms := list(_arms(name, entry)))
    ]


def to_csv(logs: Sequence[KernelLog]) -> str:
    """A line for each arm of each step of the history and of each experiment.

    Figures and verdicts of variants that have changed since are left out. What programs print has
    columns of its own, the last ones.
    """
    rows = [
        {"kernel": log.kernel, "arch": log.arch, "section": section, **row}
        for log in logs
        for section, entries in (("history", log.history), ("experiment", log.experiments))
        for name, entry in entries.items()
        for row in _arms(name, entry)
    ]
    further = sorted({key for row in rows for key in row}.difference(COLUMNS))
    text = io.StringIO()
    writer = csv.DictWriter(text, (*COLUMNS, *further), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        row = {**row, "changed_since": "; ".join(row["changed_since"])}
        writer.writerow({k: printable(v) if isinstance(v, str) else v for k, v in row.items()})
    return text.getvalue()


def _arms(name: str, entry: Standings) -> Iterator[dict[str, Any]]:
    """Baseline and candidates; the baseline once for each record that candidates come from."""
    title, shown = entry.experiment.title, None
    for index, each in enumerate(entry.candidates):
        run = each.record.run if each.record else None
        if index == 0 or run != shown:
            arm = each.record.baseline if each.record and not each.changed else None
            variant = spell_point(entry.experiment.baseline)
            yield {
                **_row(name, title, "baseline", variant, each, arm),
                "verdict": "",
                "decision": "",
            }
        shown = run
        variant = spell_point(entry.experiment.candidates[index])
        row = _row(name, title, "candidate", variant, each, None if each.changed else each.arm)
        yield {**row, "decision": each.decision.word if each.decision else ""}


def _row(
    name: str, title: str, role: str, variant: str, each: Standing, arm: Arm | None
) -> dict[str, Any]:
    record = each.record
    figures = {
        key: value
        for key in metrics.METRICS
        if arm is not None and (value := metrics.read(key, arm)) is not None
    }
    return {
        "id": name,
        "title": title,
        "arm": role,
        "variant": variant,
        "date": record.created[:10] if record else "",
        "run": record.run if record else "",
        "provenance": record.provenance if record else "",
        "device": record.device if record else "",
        "verdict": each.verdict.status.value if each.verdict and not each.changed else "",
        "changed_since": list(each.changed),
        "published_approximate": bool(arm and arm.published and arm.published.approximate),
        **figures,
        **(metrics.printed(arm) if arm else {}),
    }
