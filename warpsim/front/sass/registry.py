"""What SASS instructions stand for.

A builder receives the decoder, which stands at the instruction, and returns what is to be executed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.table import Table
from warpsim.machine.schedule.program import Exit
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.wave.machine import Op


@dataclass(frozen=True)
class BranchPoint:
    """A branch: `before` computes the predicate or the target that it goes by."""

    targets: tuple[int, ...]
    """Instructions, by number; of an indirect branch, all that it may lead to."""
    guard: int | None = None
    negated: bool = False
    index: int | None = None
    """Slot that picks the target."""
    before: Op | None = None


@dataclass(frozen=True)
class Reconvergence:
    """Waits until the lanes of a mask have come."""

    members: int
    """Slot; -1 for all lanes."""
    anywhere: bool
    """Whether they may come to different instructions of the kind."""
    exclusive: bool = False
    """Whether lanes with different masks go on one group after the other."""


Result: TypeAlias = Op | WaitGate | BranchPoint | Reconvergence | Exit
Builder: TypeAlias = Callable[[SassDecoder], Result]
B = TypeVar("B", bound=Builder)

TABLE: Table[Builder] = Table()
find = TABLE.find
"""The builder of an opcode; None if the emulator does not cover it."""


def covers(*patterns: str) -> Callable[[B], B]:
    """Registers a builder for every opcode of the patterns."""

    def register(function: B) -> B:
        for text in patterns:
            TABLE.add(text, function, lambda groups: function)
        return function

    return register
