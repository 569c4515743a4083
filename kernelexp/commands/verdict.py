"""A verdict again, from the samples that a record keeps: the command `verdict`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.text import Text

from kernelexp import records
from kernelexp.errors import UsageError
from kernelexp.judge import verdict
from kernelexp.judge.stats import estimate
from kernelexp.model import Record, Verdict, arm_names
from kernelexp.report import measured
from kernelexp.report.tables import STYLES
from kernelexp.runner import status_exit_code


class Rejudged(msgspec.Struct, frozen=True, kw_only=True):
    """A record with the verdicts that its samples give now."""

    record: Record
    margin: float
    verdicts: tuple[Verdict, ...]
    """One for each candidate; the record keeps those of its own time."""


def rejudge(path: Path, margin: float | None) -> Rejudged:
    """Decides again with `margin`, or with the record's own; UsageError where nothing was timed."""
    record = records.read_file(path)
    if record.measurement is None:
        raise UsageError(f"{path} holds no samples: nothing was timed in it.")
    margin = record.margin if margin is None else margin
    names = arm_names(len(record.candidates))[1:]
    return Rejudged(
        record=msgspec.structs.replace(record, estimate=estimate(record.measurement)),
        margin=margin,
        verdicts=tuple(verdict.measured(record.measurement, name, margin) for name in names),
    )


def exit_code(found: Rejudged) -> int:
    """That of the worst verdict."""
    return status_exit_code({each.status for each in found.verdicts})


def render(found: Rejudged) -> Iterator[RenderableType]:
    """The samples' figures, then each verdict beside the record's own where they differ."""
    yield from measured.render(found.record)
    for candidate, now in zip(found.record.candidates, found.verdicts, strict=True):
        yield from _compare(candidate.verdict, now, found.margin)


def _compare(then: Verdict, now: Verdict, margin: float) -> Sequence[Text]:
    text = Text(f"Verdict at a margin of {100 * margin:g}%: ", style="bold")
    text.append(now.status.value, style=STYLES[now.status])
    text.append(f" ({now.reason}). {now.sentence}", style="not bold")
    same = f"The record's own: {then.status}."
    return [text] if then.status is now.status else [text, Text(same)]
