"""Whether a verdict, and the effect it rests on, agree with the experiment's earlier records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelexp.measurement import Effect
from kernelexp.model import AxisValue, Candidate, Record, Status, Verdict, arm_names

# Verdicts that say nothing about time or correctness: no later run is held against them.
_SILENT = (Status.UNMEASURED, Status.INVALID, Status.INCONCLUSIVE)


def compare(
    axes: Mapping[str, AxisValue],
    verdict: Verdict,
    effect: Effect | None,
    margin: float,
    earlier: Sequence[Record],
) -> str:
    """A sentence on a verdict against the latest earlier one of the variant; "" without one.

    A run reproduces an earlier one if the verdicts are the same and the effects agree: the two
    intervals overlap or, against a published figure, which has no interval, the figure lies inside
    the new interval widened by the margin.
    """
    for record in reversed(earlier):
        for index, candidate in enumerate(record.candidates):
            if _is_same(axes, candidate) and candidate.verdict.status not in _SILENT:
                return _say(verdict.status, effect, margin, record, index)
    return ""


def _is_same(axes: Mapping[str, AxisValue], candidate: Candidate) -> bool:
    """A published record names only the axes that its source tells of."""
    return all(axes.get(name) == value for name, value in candidate.arm.axes.items())


def _say(now: Status, effect: Effect | None, margin: float, record: Record, index: int) -> str:
    before = record.candidates[index].verdict.status
    whose = "the published verdict" if record.provenance == "published" else f"run {record.run}"
    if now == Status.UNMEASURED:
        return f"Neither confirms nor contradicts {whose}, {before}: nothing was timed here."
    if now in _SILENT:
        return f"Neither confirms nor contradicts {whose}, {before}."
    if now != before:
        return f"Does not reproduce {whose}, {before}."
    if effect is None:
        return f"Reproduces {whose}, {before}."
    return _say_effect(effect, margin, record, index, f"{whose}, {before}")


def _say_effect(effect: Effect, margin: float, record: Record, index: int, whose: str) -> str:
    low, high = earlier_interval(record, index)
    if low is None or high is None:
        return f"Reproduces {whose}; no effect was recorded with it."
    widen = margin if record.provenance == "published" else 0.0
    if effect.low - widen <= high and low <= effect.high + widen:
        return f"Reproduces {whose}: the effects agree."
    return (
        f"Same verdict as {whose}, another effect: "
        f"{_percent(low)} to {_percent(high)} then, "
        f"{_percent(effect.low)} to {_percent(effect.high)} now."
    )


def earlier_interval(record: Record, index: int) -> tuple[float | None, float | None]:
    """The time ratio of a record's candidate: its interval, or twice the published ratio."""
    if record.estimate:
        name = arm_names(len(record.candidates))[1 + index]
        for effect in record.estimate.effects:
            if effect.arm == name:
                return effect.low, effect.high
    base, candidate = record.baseline.published, record.candidates[index].arm.published
    if base and candidate and base.time_ms and candidate.time_ms:
        upper = candidate.time_ms_to or candidate.time_ms
        return candidate.time_ms / base.time_ms, upper / base.time_ms
    return None, None


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f}%"
