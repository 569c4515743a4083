"""A modelled time: what the model of time says of a launch, which nobody measured."""

from __future__ import annotations

import msgspec

from kernelexp.model.timeline import Timeline
from warpsim.lineinfo import Source


class ModelledLine(msgspec.Struct, frozen=True, kw_only=True):
    """A source line, or code without one, with the cycles that warps spent at it."""

    source: Source | None
    part: float
    """Of the cycles of all warps."""
    reason: str
    """What most of its stalled cycles were for, under ncu's name."""
    of_path: float = 0
    """Of the critical path, what warps spend at this line: 0 where others hide it."""


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the critical path: a role of the warps that waits at a line for an instruction."""

    role: str
    """As the source calls it, or its warps."""
    part: float
    """Of the path: the chain of waits from the launch's start to its end."""
    source: Source | None
    """The line that it was at, or for most of the time."""
    reason: str
    """ncu's name of what it waited for."""
    waits_for: str = ""
    """The opcode of the instruction that it waited for; empty: a unit, or its own issue."""
    waits_at: Source | None = None
    """The line of that instruction."""
    waits_on: str = ""
    """The role that executed it, where it is another."""


class ModelledTime(msgspec.Struct, frozen=True, kw_only=True):
    """The modelled time of one launch, by the parameters of one chip."""

    chip: str
    size: str
    cycles: float = 0
    """Of the SMs' highest clock, from the start of the first CTA to the end of the last."""
    highest_mhz: float = 0
    """The chip's highest clock."""
    clock_mhz: float = 0
    """That `microseconds` are at: what the power limit leaves of the highest."""
    tensor_duty: float = 0
    """Part of the time in which the tensor cores are busy, which decides that."""
    microseconds: float = 0
    units: dict[str, float] = {}
    """Part of the time in which each unit of an SM, or its share of L2 and DRAM, is busy."""
    reasons: dict[str, float] = {}
    """Part of the cycles of all warps, by ncu's name of why they did not issue."""
    lines: tuple[ModelledLine, ...] = ()
    """All that cost something, the dearest first."""
    path: tuple[PathStep, ...] = ()
    """The critical path of the CTAs that were executed, the largest parts first."""
    roles: dict[str, float] = {}
    """Part of that path by the role that it goes through, the largest first."""
    followed: tuple[str, ...] = ()
    """The sizes whose CTAs were executed, where the launch is too large itself."""
    warp_instructions: int = 0
    """That were executed."""
    refused: str = ""
    """Why there is no time."""


class ModelledRun(msgspec.Struct, frozen=True, kw_only=True):
    """A launch as it was modelled: its time, and what the warps of its first CTA did."""

    time: ModelledTime
    timeline: Timeline | None = None
    """None where there is no time."""
    identity: str = ""
    """The build that was executed."""
