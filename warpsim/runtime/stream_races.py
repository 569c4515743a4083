"""Work of several streams on the same bytes, where neither is known to come first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import SITE, THREAD_BITS
from warpsim.machine.core.site import Site
from warpsim.machine.memory.history import Beside, History
from warpsim.runtime.device import Object

_MOST = 1 << 28
"""Bytes of an allocation that are looked at."""


class Ranges:
    """Bytes by address: ascending, none twice."""

    def __init__(self, first: Array, end: Array) -> None:
        order = np.argsort(first, kind="stable")
        self.first, self.end = first[order], np.maximum.accumulate(end[order])

    def meet(self, other: Ranges) -> int | None:
        """The first byte that both have."""
        if not len(self.first) or not len(other.first):
            return None
        beside = np.searchsorted(other.end, self.first, side="right")
        beside = np.minimum(beside, len(other.first) - 1)
        both = (other.first[beside] < self.end) & (self.first < other.end[beside])
        if not both.any():
            return None
        at = int(both.argmax())
        return int(max(self.first[at], other.first[beside[at]]))

    def bytes(self) -> Array:
        """First byte and the one behind the last, [n, 2]."""
        return np.stack([self.first, self.end], axis=1)

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.first.tolist(), self.end.tolist(), strict=True)


NONE = Ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))


_BRANCHES = 1 << 32
"""Streams from here on are nodes of graphs (cudart/ordering.hpp)."""
_IN_ORDER = {"cudaMallocAsync": "allocates", "cudaFreeAsync": "frees"}
"""What writes all of an allocation, as far as order is concerned."""
_SCOPES = frozenset(("sys", "volatile", "mmio"))
_KINDS = ("writes", "updates", "reads")
USAGES = ("reads", "writes", "updates")
"""By their numbers in cudart/touching.hpp."""


class Accesses(msgspec.Struct, frozen=True):
    """What a piece of work does to memory."""

    reads: Ranges = NONE
    writes: Ranges = NONE
    updates: Ranges = NONE
    """By atomics, and by writes that may meet others of their kind."""

    def conflict(self, other: Accesses) -> tuple[int, str, str] | None:
        """A byte, what this does to it and what the other one does."""
        for mine, their in itertools.product(_KINDS, _KINDS):
            if mine == their != "writes":
                continue
            byte: int | None = getattr(self, mine).meet(getattr(other, their))
            if byte is not None:
                return byte, mine, their
        return None


def accesses(
    history: History, origin: int, objects: Iterable[Object], sites: Sequence[Site] | None = None
) -> Accesses:
    """Of a launch, in the objects; origin: the address of the history's first byte; sites: its
    instructions, where only updates that the host is to see are updates."""
    others = np.array([site is not None and not _for_host(site) for site in (None, *(sites or ()))])
    kinds: dict[str, list[tuple[Array, Array]]] = {kind: [] for kind in _KINDS}
    unit = history.unit
    for item in objects:
        if item.size > _MOST:
            continue
        low, high = (item.address - origin) // unit, -(-(item.end - origin) // unit)
        written = history.written[low:high]
        own = (written != 0) & (written != history.beside)
        relaxed = own & (written == history.relaxed[low:high])
        if sites:
            relaxed &= ~others[written >> THREAD_BITS & SITE]
        columns = history.used[history.used != history.launched]
        read = (history.read[columns, low:high] != 0).any(axis=0)
        masks = {"reads": read, "writes": own & ~relaxed, "updates": relaxed}
        for kind, mask in masks.items():
            if mask.any():
                edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
                places = origin + (low + edges.reshape(-1, 2)) * unit
                kinds[kind].append((places[:, 0], places[:, 1]))
    return Accesses(**{kind: _ranges(parts) for kind, parts in kinds.items()})


def _for_host(site: Site) -> bool:
    """Whether the host may look at what it updates meanwhile: an atomic of the card's scope, which
    is the usual one, does not reach the host."""
    return not _SCOPES.isdisjoint(site.opcode.split("."))


def _ranges(parts: list[tuple[Array, Array]]) -> Ranges:
    if not parts:
        return NONE
    return Ranges(np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))


class Work(msgspec.Struct, frozen=True):
    """A launch, a copy or a fill of a stream."""

    stream: int
    count: int
    """Of the stream's work, from 1."""
    what: str
    frames: tuple[int, ...]
    accesses: Accesses

    @property
    def placed(self) -> str:
        node = self.stream >= _BRANCHES
        return f"{self.what} in {'a node of a graph' if node else f'stream {self.stream}'}"

    def does(self, kind: str) -> str:
        return _IN_ORDER.get(self.what, kind)

    def missing(self, other: Work) -> str:
        """What would order it and another."""
        if self.stream == other.stream:
            return "the launch begins early and has no cudaGridDependencySynchronize()"
        if min(self.stream, other.stream) >= _BRANCHES:
            return "neither node depends on the other"
        return "no event and no synchronisation orders the two"


class StreamRaces:
    """What has been enqueued and is not known to the host to be done."""

    def __init__(self) -> None:
        self._works: list[Work] = []
        self._stream, self._count = 0, 0
        self._clock: dict[int, int] = {}
        self._beside = 0
        self.compares = False
        """Whether there are streams besides the default one."""

    def begin(
        self,
        stream: int,
        count: int,
        clock: dict[int, int],
        host: dict[int, int],
        beside: int = 0,
    ) -> None:
        """A piece of work; clock: what comes before it, of each stream; host: what is done; beside:
        the work of its stream for which it waits after it has begun, 0: none."""
        self.compares, self._beside = True, beside
        self._stream, self._count, self._clock = stream, count, clock
        self._works = [work for work in self._works if host.get(work.stream, 0) < work.count]

    def beside(self) -> Beside | None:
        """What the work has done beside which the one that has begun begins."""
        for work in self._works:
            if self._beside and (work.stream, work.count) == (self._stream, self._beside):
                made = work.accesses
                return Beside(*(each.bytes() for each in (made.reads, made.writes, made.updates)))
        return None

    def note(
        self, what: str, frames: tuple[int, ...], made: Accesses
    ) -> Iterator[tuple[Work, Work, int, str, str]]:
        """Of the work that has begun; earlier work that it races with, with a byte and what either
        does to it."""
        now = Work(self._stream, self._count, what, frames, made)
        for work in self._works:
            if self._clock.get(work.stream, 0) < work.count:
                conflict = made.conflict(work.accesses)
                if conflict:
                    yield work, now, *conflict
        self._works.append(now)
