"""Figures that differ between two variants, and those of one cause together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts import counters, metrics
from kernelexp.facts.metrics import Kind
from kernelexp.judge import ranking
from kernelexp.judge.ranking import Difference, comparable
from kernelexp.model.arm import Arm

Way: TypeAlias = Literal["with the time", "against it", ""]
STATIC = "sass_instructions_"
WAITS = "waits at mbarriers"
WARPS = "warps_on_an_sm"
SMS = "sms_with_work"
ON_AN_SM = (WARPS, SMS)
PART = 0.25
"""Of the change of time, the share below which a consequence is not its likely cause."""


class ChangedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One difference, and whether it is for the better where the time is."""

    metric: str
    label: str
    kind: Kind
    before: metrics.Value
    after: metrics.Value
    change: float | None
    points: float | None = None
    """The change of a share, in points."""
    explains: float | None = None
    """Percent of the baseline's time that the change adds by the rate of the unit that executes it;
    below 0, what it saves at most: no more than the next limit leaves. None where no part of the
    chip has a rate for it."""
    way: Way


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of one cause."""

    name: str
    figures: tuple[ChangedFigure, ...] = msgspec.field(name="told")
    """The one that can explain most of the time first; the others go with it."""
    noise: str = ""
    """Why it says nothing of the code; empty where it does."""

    @property
    def leader(self) -> ChangedFigure:
        return self.figures[0]


def is_code(metric: str) -> bool:
    """Whether it is of the SASS, as `sass_bytes`, and not of what is executed, as
    `sass__inst_executed_global_loads`."""
    return metric.startswith("sass_") and not metric.startswith("sass__")


def kinds(before: Arm, after: Arm) -> Sequence[Kind]:
    """The kinds of evidence of which both arms have figures to compare."""
    both = list(comparable(before, after))
    if before.profiled and after.profiled and "profiled" not in both:
        both.append("profiled")
    if before.published and after.published:
        both.append("published")
    return both


def label(difference: Difference) -> str:
    """Returns a counter's usual name, whoever counted it."""
    words = difference.metric.label.strip()
    if difference.metric.name.removeprefix(counters.PTX) == "memory_l1_tag_requests_global":
        return "lines of global memory in L1"  # each takes the tag stage and the data pipe a cycle
    if difference.metric.name.startswith(STATIC):
        return f"{words} in the code"
    return f"{words}, B" if difference.metric.unit == "B" else words


def is_kept(difference: Difference) -> bool:
    """Whether a page has room for it: of a profile's figures, hundreds differ."""
    if difference.metric.kind != "profiled":
        return True
    known = difference.metric.group != counters.OTHER
    return known and ranking.is_large(difference, ranking.FLOOR)


def of_all(was: float, now: float, more: float) -> float:
    """What a part of a sum became, no further than the sum moved; unmoved where that went the other
    way."""
    own = now - was
    return was + math.copysign(min(abs(own), abs(more)), own) if own * more > 0 else was
