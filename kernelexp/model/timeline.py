"""A time line of a CTA's warps, which a model of time gives: nobody measured it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

BlockKind: TypeAlias = Literal["copy", "mma", "barrier", "memory", "wait", "other"]


class TimelineBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The main activity of a warp from `start` on, for `cycles`."""

    kind: BlockKind
    start: float
    cycles: float
    place: str
    """The source line, FILE:LINE."""
    text: str
    """The instruction, or what the warp waited for, under ncu's name."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The warps of the first CTA of a launch."""

    cycles: float
    """To the end of the last block."""
    warps: tuple[tuple[TimelineBlock, ...], ...]
    """Blocks of one warp follow one another; where it neither issues nor waits there is none."""
    roles: tuple[str, ...] = ()
    """What the source calls the code of each warp; `warps 0-7` where it has no name for it."""
    cut: bool = False
    """Whether the CTA goes on after that."""


def role_of(warp: int, roles: Sequence[str]) -> str:
    """The role of a warp; empty where the source has no name for it."""
    own = roles[warp] if warp < len(roles) else ""
    return "" if own.startswith("warp") else own


def row_name(warp: int, roles: Sequence[str]) -> str:
    """Returns the name of a warp's row."""
    role = role_of(warp, roles)
    return f"warp {warp}, {role}" if role else f"warp {warp}"
