"""Figures that differ between two variants, those of one cause together, and the units of a chip
that have more or less to do."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts import counters, metrics
from kernelexp.facts.metrics import Kind
from kernelexp.judge import ranking
from kernelexp.judge.limits.floors import Resource
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


PIPE = re.compile(r"sm__inst_executed_pipe_(alu|fma|xu|lsu)")
_UNIT_OF: dict[str, Resource] = {
    "alu": "ALU pipe",
    "fma": "FMA pipe",
    "xu": "XU pipe",
    "lsu": "LSU",
}
# What has less to do, besides issue slots, where one is not executed.
_L1: tuple[Resource, ...] = ("L1 data pipe", "shared memory", "L1 tag stage", "LSU")
_PIPES: tuple[Resource, ...] = ("issue slots", "FMA pipe", "ALU pipe", "XU pipe")
_FREED: tuple[tuple[str, tuple[Resource, ...]], ...] = (
    (r"memory_l1_wavefronts|l1tex__data_|derived__memory_l1", ("shared memory", "L1 data pipe")),
    (r"memory_l1_tag_requests", ("L1 tag stage", "L1 data pipe")),
    (r"executed_mma_gflop", ("tensor cores", "shared memory", "L1 data pipe")),
    (r"dram__bytes", ("device memory", "L2")),
    (r"l1tex__m_", ("L2", "L1 to L2")),
    (r"memory_l2_|l1tex__t_", ("L2", "L1 to L2", *_L1)),
    (r"sass__inst_executed_(shared|global|local)", _L1),
    (r"sm__inst_executed_pipe_alu", ("ALU pipe", "issue slots")),
    (r"sm__inst_executed_pipe_fma", ("FMA pipe", "issue slots")),
    (r"sm__inst_executed_pipe_xu", ("XU pipe", "issue slots")),
    (r"sm__inst_executed_pipe_lsu", ("LSU", "issue slots")),
    (r"", _PIPES),
)
EXECUTED = "smsp__inst_executed"


def units(metric: str) -> tuple[Resource, ...]:
    """Returns the units that have less to do where a figure falls."""
    name = metric.removeprefix(counters.PTX)
    return next(freed for pattern, freed in _FREED if re.match(pattern, name))


def own_units(metric: str) -> tuple[Resource, ...]:
    """Returns the units that have more to do where a figure rises."""
    name = metric.removeprefix(counters.PTX)
    if pipe := PIPE.match(name):
        return (_UNIT_OF[pipe[1]],)
    return ("issue slots",) if name.startswith(EXECUTED) else units(metric)
