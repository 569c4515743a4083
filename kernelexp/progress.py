"""How far a long piece of work is: what a service tells whoever displays it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

Phase: TypeAlias = Literal["building", "emulating", "measuring", "profiling"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One report; the first comes before any work is done, with `done` 0."""

    phase: Phase
    done: int
    total: int
    now: str = ""
    """What is worked on at this moment, such as a variant's label."""


OnProgress: TypeAlias = Callable[[Step], None]
