"""Stall reasons: the cycles that an average warp spends in each state, of several profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelexp.model.arm import ProfiledEvidence
from kernelexp.model.errors import UsageError
from kernelexp.report.charts.chart import Bars

_STALL = re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio")
SMALLEST = 0.01
"""States with a smaller share of the cycles in every profile are left out."""


def bars(subjects: Sequence[tuple[str, ProfiledEvidence]]) -> Bars:
    """A group of bars for each state, the largest first; UsageError where a profile has none."""
    result = [_stalls(name, evidence) for name, evidence in subjects]
    totals = [sum(item.values()) or 1.0 for item in result]
    states = {
        state: max(item.get(state, 0.0) for item in result)
        for state in dict.fromkeys(state for item in result for state in item)
        if any(
            item.get(state, 0.0) >= SMALLEST * total
            for item, total in zip(result, totals, strict=True)
        )
    }
    return Bars(
        title="Stalls: " + " and ".join(name for name, _ in subjects),
        unit="cycles of an average warp",
        names=tuple(name for name, _ in subjects),
        groups=tuple(
            (state.replace("_", " "), tuple(item.get(state) for item in result))
            for state in sorted(states, key=lambda state: -states[state])
        ),
        note="In the state `selected` the warp issues. States below 1% are left out.",
    )


def has_any(evidence: ProfiledEvidence) -> bool:
    """Whether bars() has something to show."""
    return any(map(_STALL.fullmatch, evidence.figures))


def _stalls(name: str, evidence: ProfiledEvidence) -> dict[str, float]:
    result = {
        match[1]: value
        for metric, value in evidence.figures.items()
        if (match := _STALL.fullmatch(metric)) and isinstance(value, float)
    }
    if not result:
        raise UsageError(
            f"the profile of {name} has no stalls: take one with the sections of ncu's "
            "WarpStateStats (kernelexp profile does)."
        )
    return result
