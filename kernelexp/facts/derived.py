"""Figures that ncu has no metric for, or that its set did not collect, from others of a profile;
what its warps wait for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kernelexp.facts.chips import ARCHITECTURES, SCHEDULERS
from kernelexp.model.arm import Arm

_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
_RATIO = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")


def derive(figures: Mapping[str, float | str]) -> Iterator[tuple[str, float]]:
    """Figures computed from others of the same profile, under names of their own.

    l1_throughput_percent: L1's throughput relative to elapsed cycles, as L2's and DRAM's are.
    excessive_l2_sectors_percent: sectors beyond the ideal number, of all global sectors.
    issue_slots_busy_percent: instructions issued per active cycle and scheduler.
    stall_*_percent: warps stalled for a reason, of the warps that a scheduler can hold.
    """
    numbers = {name: value for name, value in figures.items() if isinstance(value, int | float)}

    def ratio(over: float | None, under: float | None) -> float | None:
        return over / under if over is not None and under else None

    get = numbers.get
    active = ratio(get("l1tex__cycles_active.avg"), get("l1tex__cycles_elapsed.avg"))
    l1 = get("l1tex__throughput.avg.pct_of_peak_sustained_active")
    if l1 is not None and active is not None:
        yield "l1_throughput_percent", l1 * active
    excessive = ratio(
        get("derived__memory_l2_theoretical_sectors_global_excessive"),
        get("memory_l2_theoretical_sectors_global"),
    )
    if excessive is not None:
        yield "excessive_l2_sectors_percent", 100 * excessive
    busy = ratio(
        get("sm__inst_issued.avg.per_cycle_active"),
        get("device__attribute_num_schedulers_per_multiprocessor"),
    )
    if busy is not None:
        yield "issue_slots_busy_percent", 100 * busy
    yield from _derive_stalls(numbers, busy)


_SHARE = re.compile(r"stall_(\w+)_percent")
_STALLED = re.compile(r"smsp__warps_issue_stalled_(\w+)\.avg\.pct_of_peak_sustained_active")


def substitute(name: str) -> str:
    """Returns derive()'s name for what ncu calls `name` in other sets; empty for none."""
    match = _STALLED.fullmatch(name)
    if match is None:
        return ""
    return "issue_slots_busy_percent" if match[1] == "selected" else f"stall_{match[1]}_percent"


def stall(name: str) -> str:
    """The reason to wait, of which a figure gives the share: `long scoreboard`; else empty."""
    match = _STALLED.fullmatch(name) or _SHARE.fullmatch(name)
    return _singular(match[1]).replace("_", " ") if match else ""


def is_derived(name: str) -> bool:
    """Whether a name can be one that derive() gives: ncu's own have two underscores."""
    return "__" not in name


def _singular(reason: str) -> str:
    """ncu samples `no_instructions` and counts `no_instruction`."""
    return reason.removesuffix("s") if reason.endswith("instructions") else reason


def _derive_stalls(numbers: Mapping[str, float], busy: float | None) -> Iterator[tuple[str, float]]:
    """Derives stalls from counters if collected, else from sampled shares of the active warps."""
    shares: dict[str, float] = {}
    samples = {
        _singular(name.removeprefix(_SAMPLES)): value
        for name, value in numbers.items()
        if name.startswith(_SAMPLES) and not name.endswith("_not_issued")
    }
    total = sum(samples.values())
    occupancy = numbers.get("sm__warps_active.avg.pct_of_peak_sustained_active")
    if total and occupancy is not None:
        shares = {reason: occupancy * count / total for reason, count in samples.items()}
    slots = numbers.get("device__attribute_max_warps_per_scheduler")
    if busy is not None and slots:
        matches = ((_RATIO.fullmatch(name), value) for name, value in numbers.items())
        shares |= {_singular(m[1]): 100 * value * busy / slots for m, value in matches if m}
    for reason, value in shares.items():
        if reason != "selected":
            yield f"stall_{reason}_percent", value


READY = ("selected", "not selected")
"""Of what warps do, what is no waiting."""


def stalls(arm: Arm) -> dict[str, float]:
    """Percent of its warps' time by what they do, largest first: each reason to wait, and
    `selected`, which issues.

    ncu gives shares of the warps that a scheduler can hold, but `selected` of its one issue slot.
    The sum is the occupancy (10 profiles of an H200: within 1% of it, and each share within 0.4
    points of that of smsp__average_warp_latency_issue_stalled_*).
    """
    figures = arm.profiled.figures if arm.profiled else {}
    every = {**dict(derive(figures)), **figures}
    slots: dict[str, float] = {}
    for name, value in every.items():
        if (reason := stall(name)) and isinstance(value, int | float):
            slots[reason] = float(value)
    if "selected" in slots:
        warps = ARCHITECTURES[arm.arch].warps_per_sm if arm.arch in ARCHITECTURES else 64
        slots["selected"] /= warps / SCHEDULERS
    whole = sum(slots.values())
    shares = {reason: 100 * value / whole for reason, value in slots.items() if whole}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
