"""What became of experiments that were run, for programs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelexp.judge import expectations
from kernelexp.judge.expectations import Judged
from kernelexp.model.record import Record
from kernelexp.services.run.runs import Outcome


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment: its record, or the error that kept it from one."""

    experiment: str
    path: str | None
    """The record's file; None where none was written."""
    record: Record | None
    expectations: dict[str, tuple[Judged, ...]]
    """What became of them, by the candidate's name."""
    error: str | None


def to_values(outcomes: Sequence[Outcome]) -> list[Ran]:
    """An item for each experiment, in the order in which they were named."""
    return [
        Ran(
            experiment=each.experiment,
            path=str(each.path) if each.path else None,
            record=each.record,
            expectations=expectations.of_record(each.record) if each.record else {},
            error=str(each.error) if each.error else None,
        )
        for each in outcomes
    ]
