"""Copies and matrix multiplications that were issued and have not landed yet.

Under the schedule "early" an operation lands when it is issued, under "late" only when no warp can
go on without it: whatever a kernel forgets to wait for is then missing or in the way.
"""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import Clocks
from warpsim.machine.core.site import Site


@dataclass(slots=True, eq=False)
class Pending:
    """An issued operation. `order`: operations of the same order land in the order of issue."""

    what: str
    land: Callable[[], None]
    site: Site
    order: Hashable = None
    touches: tuple[tuple[int, int], ...] = ()
    """(first, end) of the shared-memory arena bytes that it reads or writes."""
    signals: tuple[int, ...] = ()
    """Arena offsets of the mbarriers that it completes on."""
    outgoing: bool = False
    """Whether it reads shared memory for a bulk store."""
    done: bool = False
    landed: int = 0
    """The clock when it landed: for a bulk store, when it had read its source."""
    number: int = 0
    """How many were issued before it."""
    cta: int = 0
    """The resident CTA that issued it, or in which it lands."""

    def describe(self) -> str:
        return f"{self.what} ({self.site.where()})"


class Engines:
    """Everything in flight."""

    def __init__(
        self, late: bool, chance: random.Random, oldest_first: bool, changed: list[object]
    ) -> None:
        """changed: takes up what has landed."""
        self.late = late
        self._changed = changed
        self.chance = chance
        self.oldest_first = oldest_first
        self.pending: dict[Pending, None] = {}
        """In the order of issue."""
        self._issued = 0
        self._signalling: dict[int, set[Pending]] = {}
        """Those that complete on an mbarrier."""
        self._queues: dict[Hashable, dict[Pending, None]] = {}
        """Those of an order."""
        self._due: set[Pending] = set()
        """Those that somebody waits for."""
        self._wanted: set[Pending] = set()
        """What somebody waits for that has not been issued yet."""
        self._awaited: Counter[int] = Counter()
        """How many wait for each mbarrier, by its arena offset."""

    def issue(self, operation: Pending) -> Pending:
        if not self.late:
            self._wanted.discard(operation)
            self._finish(operation)
            return operation
        if operation in self._wanted:
            self._wanted.discard(operation)
            self._due.add(operation)
        operation.number = self._issued
        self._issued += 1
        self.pending[operation] = None
        for barrier in operation.signals:
            self._signalling.setdefault(barrier, set()).add(operation)
        if operation.order is not None:
            self._queues.setdefault(operation.order, {})[operation] = None
        return operation

    def want(self, operations: Iterable[Pending]) -> None:
        """Somebody waits for these until they have landed."""
        for operation in operations:
            if operation in self.pending:
                self._due.add(operation)
            elif not operation.done:
                self._wanted.add(operation)

    def wait_for(self, barrier: int) -> None:
        """Somebody waits for the mbarrier at an arena offset."""
        self._awaited[barrier] += 1

    def wait_no_more(self, barrier: int) -> None:
        """One fewer waits for it."""
        self._awaited[barrier] -= 1
        if not self._awaited[barrier]:
            del self._awaited[barrier]

    def land_some(self) -> bool:
        """Lands operations that may land, preferably ones that somebody waits for, themselves or
        their signals; False if there are none.

        One in a CTA, in several CTAs at once: what an engine does for one is seen by no other, but
        by such flags as race checks follow, and their warps go on as one set.
        """
        if not self.pending:
            return False
        due = self._due.copy()
        for barrier in self._awaited:
            if signalling := self._signalling.get(barrier):
                due |= signalling
        if due:
            operations = self._one_of_each_cta(sorted(due, key=_number))
        else:
            first = next(iter(self.pending))
            operations = [first if self.oldest_first else self.chance.choice(self._heads())]
        for operation in operations:
            if not operation.done:
                self._land(self._head(operation))
        return True

    def _one_of_each_cta(self, due: list[Pending]) -> list[Pending]:
        """The oldest in each CTA; or any in one, and half of the time those of the same instruction
        in the others with it."""
        if self.oldest_first:
            return list({operation.cta: operation for operation in reversed(due)}.values())
        first = self.chance.choice(due)
        alike = {operation.cta: operation for operation in due if operation.site is first.site}
        if len(alike) == 1 or self.chance.random() < 0.5:
            return [first]
        return list((alike | {first.cta: first}).values())

    def land_until(self, operations: list[Pending]) -> None:
        """Lands these, and what has to land before them."""
        for operation in operations:
            while not operation.done:
                self._land(self._head(operation))

    def _head(self, operation: Pending) -> Pending:
        """The pending operation that has to land first: itself, or the oldest of its order."""
        return operation if operation.order is None else next(iter(self._queues[operation.order]))

    def _heads(self) -> list[Pending]:
        return [operation for operation in self.pending if self._head(operation) is operation]

    def _land(self, operation: Pending) -> None:
        del self.pending[operation]
        self._due.discard(operation)
        for barrier in operation.signals:
            self._signalling[barrier].discard(operation)
        if operation.order is not None:
            del self._queues[operation.order][operation]
        self._finish(operation)

    def _finish(self, operation: Pending) -> None:
        operation.land()
        operation.land = _landed  # what it needed is let go, and no garbage that refers to itself
        operation.done = True
        self._changed.append(operation)


def _landed() -> None:
    raise AssertionError("lands twice")


_number = operator.attrgetter("number")


class Issuer:
    """The thread that issued an operation, at which instruction, and what it had seen then."""

    def __init__(self, clocks: Clocks, place: int, lane: int, site: Site) -> None:
        self.place = place
        self.thread = place * 32 + lane
        self.site = site
        self.seen: Array = clocks.seen[place].copy()
        self.fences = {space: fences.row(place) for space, fences in clocks.proxy.items()}


P = TypeVar("P", bound=Pending)


def _have_landed(operations: Iterable[Pending]) -> bool:
    for operation in operations:
        if not operation.done:
            return False
    return True


class CommitGroups(Generic[P]):
    """Operations of each thread, or warp, in the groups in which it waits for them."""

    def __init__(self) -> None:
        self._open: dict[int, list[P]] = {}
        self._closed: dict[int, list[list[P]]] = {}

    def add(self, owner: int, *operations: P) -> None:
        opened = self._open.get(owner)
        if opened is None:
            self._open[owner] = list(operations)
        else:
            opened += operations

    def commit(self, owner: int) -> None:
        self._closed.setdefault(owner, []).append(self._open.pop(owner, []))

    def opened(self, owner: int) -> list[P]:
        """Operations of the group that is not closed yet."""
        return self._open.get(owner, [])

    def closed(self, owner: int) -> list[list[P]]:
        return self._closed.get(owner, [])

    def due(self, owner: int, allowed: int) -> list[P]:
        """Operations of all groups but the last `allowed`."""
        groups = self._closed.get(owner)
        if groups is None or (due := len(groups) - allowed) <= 0:
            return []
        return [operation for group in groups[:due] for operation in group]

    def forget(self, owner: int, allowed: int) -> None:
        """Drops those of the groups but the last `allowed` that have landed as a whole."""
        groups = self._closed.get(owner)
        if groups is not None and (due := len(groups) - allowed) > 0:
            groups[:due] = [group for group in groups[:due] if not _have_landed(group)]
