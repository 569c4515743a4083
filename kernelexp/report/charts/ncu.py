"""Charts of profiles: the roofline of a chip with its profiled variants, and their stall reasons.

Intensity is useful FLOPs over the bytes that DRAM moved; so a variant that reads its inputs twice
stands further left, under a lower roof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.facts import chips
from kernelexp.facts.chips import Chip
from kernelexp.model.arm import Arm, ProfiledEvidence
from kernelexp.model.errors import UsageError, join
from kernelexp.model.record import Profile
from kernelexp.report.charts.chart import Bars, ChartAxis, Mark, Plot, Series
from kernelexp.report.document.document import grouped

Find: TypeAlias = Callable[[Arm], Arm | None]
"""The variant of a profile as it was measured with the same sources; None where it was not."""


def rooflines(
    kept: Iterable[tuple[str, Profile]], find: Find, dtype: str = ""
) -> tuple[tuple[Plot, ...], tuple[str, ...]]:
    """A plot for each chip that the profiles, each with its label, are of; and why the others
    can't be placed."""
    result: dict[str, tuple[Chip, list[Mark]]] = {}
    reasons: dict[str, None] = {}
    for label, profile in kept:
        placed = _place(label, profile, find(profile.arm))
        if isinstance(placed, str):
            reasons[f"{profile.run} {placed}"] = None
            continue
        chip, point = placed
        result.setdefault(chip.name, (chip, []))[1].append(point)
    return tuple(_plot(chip, points, dtype) for chip, points in result.values()), tuple(reasons)


def _place(label: str, profile: Profile, arm: Arm | None) -> tuple[Chip, Mark] | str:
    """Returns the chip and the point of a profile's variant, or what the profile lacks."""
    evidence = profile.arm.profiled
    assert evidence is not None, "read_file() refuses others"
    chip = chips.find(evidence.device)
    if chip is None:
        return f"is of a GPU whose peaks are not known ({evidence.device or 'not named'})"
    moved = _moved(evidence.figures)
    if not moved:
        return "does not count DRAM bytes"
    measured = arm.measured if arm else None
    if not measured or measured.size != evidence.size or chips.find(measured.device) != chip:
        return "has no measured record of its variant, sources, size and GPU"
    if not measured.flops or measured.time_us is None:
        return "is of a problem that states no useful FLOPs"
    return chip, Mark(
        x=measured.flops / moved, y=measured.flops / measured.time_us / 1e6, label=label
    )


def _moved(figures: dict[str, float | str]) -> float:
    """Bytes that DRAM read and wrote; 0 where they were not counted."""
    parts = [figures.get(f"dram__bytes_{way}.sum") for way in ("read", "write")]
    total = figures.get("dram__bytes.sum")
    if isinstance(total, float):
        return total
    return sum(part for part in parts if isinstance(part, float)) if all(parts) else 0.0


def _plot(chip: Chip, points: list[Mark], dtype: str) -> Plot:
    if dtype and dtype not in chip.tensor:
        raise UsageError(f"--dtype {dtype}: of the {chip.name}, known are {join(chip.tensor)}.")
    points = _shorten(points)
    roofs = {name: limit for name, limit in chip.tensor.items() if not dtype or name == dtype}
    peaks = grouped((limit.value / 1e12, name) for name, limit in roofs.items())
    bandwidth = chip.dram.value / 1e12
    ridge = max(peaks) / bandwidth
    left = min([point.x for point in points]) / 4
    right = max(ridge, *(point.x for point in points)) * 4
    lines = [
        Series(name=f"{'/'.join(names)} peak, {peak:,.0f} TFLOPS", look="line", marks=tuple(marks))
        for peak, names in peaks.items()
        if (marks := list(_roof(peak, bandwidth, left, right)))
    ]
    sources = dict.fromkeys(roof.source for roof in (*roofs.values(), chip.dram))
    return Plot(
        title=f"Roofline of {chip.name}, DRAM {bandwidth:g} TB/s",
        x=ChartAxis(label="useful FLOPs per byte of DRAM", unit="FLOP/B", log=True),
        y=ChartAxis(label="useful work", unit="TFLOPS", log=True),
        series=(
            *lines,
            *(Series(name=mark.label, marks=(mark,)) for mark in points),
        ),
        note=f"Times are measured; bytes are those that ncu counted. Peaks: {'; '.join(sources)}.",
    )


def _roof(peak: float, bandwidth: float, left: float, right: float) -> Iterator[Mark]:
    yield Mark(x=left, y=min(peak, left * bandwidth))
    if left < peak / bandwidth < right:
        yield Mark(x=peak / bandwidth, y=peak)
    yield Mark(x=right, y=min(peak, right * bandwidth))


def _shorten(points: list[Mark]) -> list[Mark]:
    """Labels with those axes only in which the points differ."""
    parts = [point.label.split(", ") for point in points]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    return [
        msgspec.structs.replace(point, label=", ".join(p for p in own if p not in shared))
        for point, own in zip(points, parts, strict=True)
    ]


_STALL = re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio")
SMALLEST_STALL = 0.01
"""States with a smaller share of the cycles in every profile are left out."""


def stalls(subjects: Sequence[tuple[str, ProfiledEvidence]]) -> Bars:
    """A group of bars for each state, the largest first; UsageError where a profile has none."""
    result = [_stalls(name, evidence) for name, evidence in subjects]
    totals = [sum(item.values()) or 1.0 for item in result]
    states = {
        state: max(item.get(state, 0.0) for item in result)
        for state in dict.fromkeys(state for item in result for state in item)
        if any(
            item.get(state, 0.0) >= SMALLEST_STALL * total
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


def has_stalls(evidence: ProfiledEvidence) -> bool:
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
