"""A verdict again, from the samples that a record keeps."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kernelexp.judge import consistency, verdict
from kernelexp.judge.statistics.stats import estimate
from kernelexp.logs import records
from kernelexp.model.arm import Verdict
from kernelexp.model.errors import UsageError
from kernelexp.model.record import Record, measurement_of


class Rejudged(msgspec.Struct, frozen=True, kw_only=True):
    """A record with the verdicts that its samples give now."""

    record: Record
    margin: float
    verdicts: tuple[Verdict, ...]
    """One for each candidate; the record keeps those of its own time."""
    remarks: tuple[str, ...] = ()
    """What is to be known of the record's own figures."""


def judge(path: Path, margin: float | None) -> Rejudged:
    """Decides again with `margin`, or with the record's own; UsageError where nothing was timed."""
    record = records.read_file(path)
    measurement = record.measurement
    if measurement is None:
        raise UsageError(
            f"{path.name} holds no samples: nothing was timed in it; kernelexp run "
            f"{record.experiment} on a machine with a GPU of {record.arch} takes some."
        )
    margin = record.margin if margin is None else margin
    return Rejudged(
        record=msgspec.structs.replace(record, estimate=estimate(measurement)),
        margin=margin,
        verdicts=tuple(
            candidate.arm.refused
            or consistency.qualified(
                record,
                name,
                candidate,
                verdict.measured(measurement_of(record, name) or measurement, name, margin),
            )
            for name, candidate in zip(record.names[1:], record.candidates, strict=True)
        ),
        remarks=tuple(consistency.remarks(record)),
    )
