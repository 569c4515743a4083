"""Copies and matrix multiplications that were issued and have not landed yet.

Under the schedule "early" an operation lands when it is issued, under "late" only when no warp can
go on without it: whatever a kernel forgets to wait for is then missing or in the way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine


@dataclass(slots=True, eq=False)
class Pending:
    """An issued operation. `order`: operations of the same order land in the order of issue."""

    what: str
    land: Callable[[], None]
    instruction: Instruction
    order: Hashable = None
    touches: tuple[tuple[int, int], ...] = ()
    """(first, end) of the shared-memory arena bytes that it reads or writes."""
    registers: tuple[int, ...] = ()
    """Slots that it writes when it is waited for."""
    done: bool = False
    landed: int = 0
    """The clock when a bulk store had read its source."""


class Engines:
    """Everything in flight."""

    def __init__(self, late: bool, chance: random.Random) -> None:
        self.late = late
        self.chance = chance
        self.pending: list[Pending] = []

    def issue(self, operation: Pending) -> Pending:
        if self.late:
            self.pending.append(operation)
        else:
            operation.land()
            operation.done = True
        return operation

    def land_one(self) -> bool:
        """Lands one operation that may land; False if there is none."""
        if not self.pending:
            return False
        self._land(self.chance.choice(self._heads()))
        return True

    def land_until(self, operations: list[Pending]) -> None:
        """Lands these, and what has to land before them."""
        for operation in operations:
            while not operation.done:
                head = next(p for p in self.pending if p is operation or self._before(p, operation))
                self._land(head)

    def _before(self, first: Pending, second: Pending) -> bool:
        return second.order is not None and first.order == second.order

    def _heads(self) -> list[Pending]:
        seen: set[Hashable] = set()
        heads = []
        for operation in self.pending:
            if operation.order is None or operation.order not in seen:
                heads.append(operation)
            seen.add(operation.order)
        return heads

    def _land(self, operation: Pending) -> None:
        self.pending.remove(operation)
        operation.land()
        operation.done = True


class Issuer:
    """The thread that issued an operation, and what it had seen then."""

    def __init__(self, machine: Machine, place: int, lane: int) -> None:
        self.place = place
        self.thread = place * 32 + lane
        clocks = machine.clocks
        self.seen: Array = clocks.seen[place].copy()
        self.fence: Array = clocks.fence_seen[place].copy()
