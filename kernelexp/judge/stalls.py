"""Warps' time by ncu's reasons to stall."""

from __future__ import annotations

from kernelexp.facts import derived
from kernelexp.facts.arch import ARCHITECTURES, SCHEDULERS
from kernelexp.model.arm import Arm

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
    every = {**dict(derived.derive(figures)), **figures}
    slots: dict[str, float] = {}
    for name, value in every.items():
        if (reason := derived.stall(name)) and isinstance(value, int | float):
            slots[reason] = float(value)
    if "selected" in slots:
        warps = ARCHITECTURES[arm.arch].warps_per_sm if arm.arch in ARCHITECTURES else 64
        slots["selected"] /= warps / SCHEDULERS
    whole = sum(slots.values())
    shares = {reason: 100 * value / whole for reason, value in slots.items() if whole}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
