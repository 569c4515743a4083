"""Whether a verdict agrees with the earlier records of its experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelexp.model import AxisValue, Candidate, Record, Status, Verdict

# Verdicts that say nothing about time or correctness: no later run is held against them.
_SILENT = (Status.UNMEASURED, Status.INVALID, Status.INCONCLUSIVE)


def compare(axes: Mapping[str, AxisValue], verdict: Verdict, earlier: Sequence[Record]) -> str:
    """A sentence on `verdict` against the latest earlier one of the variant; "" without one."""
    for record in reversed(earlier):
        for candidate in record.candidates:
            if _is_same(axes, candidate) and candidate.verdict.status not in _SILENT:
                return _say(verdict.status, candidate.verdict.status, record)
    return ""


def _is_same(axes: Mapping[str, AxisValue], candidate: Candidate) -> bool:
    """A published record names only the axes that its source tells of."""
    return all(axes.get(name) == value for name, value in candidate.arm.axes.items())


def _say(now: Status, before: Status, record: Record) -> str:
    whose = "the published verdict" if record.provenance == "published" else f"run {record.run}"
    if now == before:
        return f"Reproduces {whose}, {before}."
    if now == Status.UNMEASURED:
        return f"Neither confirms nor contradicts {whose}, {before}: nothing was timed here."
    return f"Does not reproduce {whose}, {before}."
