"""Results of experiments that were run, for programs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelexp.judge import expectations
from kernelexp.judge.expectations import Judged
from kernelexp.model.record import Record
from kernelexp.services.run.runs import FailedRun, Outcome


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment: its record, or the error that kept it from one."""

    experiment: str
    path: str | None = None
    """The record's file; None where none was written."""
    record: Record | None = None
    expectations: dict[str, tuple[Judged, ...]] = {}
    """What became of them, by the candidate's name."""
    error: str | None = None


def to_values(outcomes: Sequence[Outcome]) -> list[Ran]:
    """An item for each experiment, in the order in which they were named."""
    return [
        Ran(experiment=outcome.experiment, error=str(outcome.error))
        if isinstance(outcome, FailedRun)
        else Ran(
            experiment=outcome.experiment,
            path=str(outcome.path) if outcome.path else None,
            record=outcome.record,
            error=outcome.unkept or None,
            expectations=expectations.of_record(outcome.record),
        )
        for outcome in outcomes
    ]
