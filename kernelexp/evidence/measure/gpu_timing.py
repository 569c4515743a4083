"""Times launches in rows: the arms in a random order, then in that order backwards."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from kernelexp.evidence.measure.arrays import Flush, InputSet
from kernelexp.model.measurement import Row

if TYPE_CHECKING:
    import torch

# Rows between two looks at the device fill about this much time; a look costs about 1 ms.
BLOCK_S = 0.025
# Warm-up ends when the median row of one window is within this of the window before it.
WINDOW_S = 0.1
DRIFT = 0.005
# A card under its power limit never stands quite still: past this, what drift is left is recorded.
WARM_UP_MAX_S = 1.5
POLL_S = 0.0001
# In a race, an arm that takes longer than so many times the fastest sits out rows, so that its
# share of the time is at most that of so many fast ones.
SLOW = 4.0
# Of the time, for all peers: with a fifth, intervals of peers 2 to 6 times as slow were 0.5 to 2.4%
# wide on each side (H200, A16). And rows that each is to have in a process all the same.
PEERS_SHARE = 0.5
PEER_ROWS = 16
# Other arms in a row that ends with a launch to be checked: what ran before is any of them.
COMPANIONS = 3

Launchable = Callable[[int], None]
"""Enqueues one launch on the stream whose handle it is given."""


class Hang(Exception):
    """A launch did not end in time; `arm` is its position."""

    def __init__(self, arm: int, limit_s: float) -> None:
        super().__init__(f"the launch had not ended after {limit_s:g} s")
        self.arm = arm


class TimedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that was enqueued, between its two events."""

    arm: int
    start: Any
    end: Any


class Sampler(Protocol):
    """One way to take a sample: what is enqueued for one arm, and what the events enclose."""

    launches: int

    def enqueue(self, arm: int, turn: int, byte: int) -> TimedLaunch: ...


def _event() -> torch.cuda.Event:
    import torch

    return torch.cuda.Event(enable_timing=True)


class LaunchSampler:
    """One launch between two events, on the set whose turn it is.

    Before each, outside the time, its outputs are poisoned and what it reads and writes has its
    first values again: every timed launch could be checked, and none finds its work done. `hot`:
    the same launch runs untimed first and no flush follows.
    """

    launches = 1

    def __init__(
        self, sets: Sequence[InputSet], calls: Sequence[Sequence[Launchable]], hot: bool
    ) -> None:
        import torch

        self._sets, self._calls, self._hot = sets, calls, hot
        self._flush = None if hot else Flush()
        self._stream = torch.cuda.current_stream()

    def enqueue(self, arm: int, turn: int, byte: int) -> TimedLaunch:
        index = turn % len(self._sets)
        call = self._calls[arm][index]
        if self._hot:
            call(self._stream.cuda_stream)
        self._sets[index].reset(byte)
        if self._flush:
            self._flush()
        start, end = _event(), _event()
        start.record(self._stream)
        call(self._stream.cuda_stream)
        end.record(self._stream)
        return TimedLaunch(arm=arm, start=start, end=end)


class GraphSampler:
    """A CUDA graph of one launch on each set between two events, all outputs reset before it.

    The graphs are made in a random order: made in the same order in each of eight processes, the
    same kernel's were up to 0.11% apart, always the same ones (9 us kernel, H200).
    """

    def __init__(
        self,
        sets: Sequence[InputSet],
        calls: Sequence[Sequence[Launchable]],
        rng: random.Random,
    ) -> None:
        import torch

        self._sets = sets
        self.launches = len(sets)
        self._flush = Flush()
        self._flush()
        self._graphs = {}
        torch.cuda.synchronize()
        for arm in rng.sample(range(len(calls)), len(calls)):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                handle = torch.cuda.current_stream().cuda_stream
                for call in calls[arm]:
                    call(handle)
            self._graphs[arm] = graph
        self._stream = torch.cuda.current_stream()

    def enqueue(self, arm: int, turn: int, byte: int) -> TimedLaunch:
        for argument_set in self._sets:
            argument_set.reset(byte)
        self._flush()
        start, end = _event(), _event()
        start.record(self._stream)
        self._graphs[arm].replay()
        end.record(self._stream)
        return TimedLaunch(arm=arm, start=start, end=end)


def strides(row: Row, among: Collection[int]) -> dict[int, int]:
    """Returns by arm the stride of rows in which it takes part, for the arms that are slow in `row`
    compared with the fastest of `among`."""
    times: dict[int, float] = {}
    for arm, time_us in zip(row.order, row.times_us, strict=True):
        times[arm] = min(time_us, times.get(arm, time_us))
    limit = SLOW * min(time_us for arm, time_us in times.items() if arm in among)
    return {arm: math.ceil(item / limit) for arm, item in times.items() if item > limit}


def sparse(row: Row, peers: Collection[int], timing_s: float) -> dict[int, int]:
    """Returns the stride of rows in which each peer takes part, so that all of them together take
    no more than PEERS_SHARE of the time, and each has some of the rows that fill `timing_s`."""
    times = dict.fromkeys(peers, 0.0)
    for arm, time_us in zip(row.order, row.times_us, strict=True):
        times[arm] = times.get(arm, 0.0) + time_us
    own_us = sum(time_us for arm, time_us in times.items() if arm not in peers)
    most = max(1, int(1e6 * timing_s / own_us / PEER_ROWS))
    each_us = own_us * PEERS_SHARE / (1.0 - PEERS_SHARE) / max(1, len(peers))
    return {arm: min(most, math.ceil(times[arm] / each_us)) for arm in peers}


def time_share(rows: Sequence[Row], arms: Sequence[int]) -> float:
    """The part of the launches' time that these arms took."""
    chosen = set(arms)
    pairs = [pair for row in rows for pair in zip(row.order, row.times_us, strict=True)]
    return sum(time_us for arm, time_us in pairs if arm in chosen) / sum(
        time_us for _, time_us in pairs
    )


def orders(arms: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
    """Rows without end: the arms in a random order, then in the same order backwards."""
    while True:
        order = list(arms)
        rng.shuffle(order)
        yield (*order, *reversed(order))


class Timer:
    """Enqueues rows through a sampler and waits for them, each launch for at most `limit_s`."""

    def __init__(self, sampler: Sampler, rng: random.Random, limit_s: float) -> None:
        self.sampler = sampler
        self._rng, self._limit_s = rng, limit_s
        self._turn = self._row = 0
        self.strides: Mapping[int, int] = {}
        """Arms that take part in every so many-th window of rows only."""
        self.window = 1
        """Rows, one on each set of arrays: an arm that sits out meets all sets, or none."""

    @property
    def turn(self) -> int:
        """The next row is on the set whose turn this is."""
        return self._turn

    def dense(self, arms: Sequence[int]) -> list[int]:
        """Those that take part in every row."""
        return [arm for arm in arms if arm not in self.strides]

    def begin(self) -> None:
        """The next row has all arms."""
        self._row = 0

    def rows(self, arms: Sequence[int], count: int) -> tuple[Row, ...]:
        """`count` rows of these arms, enqueued without a pause."""
        pending = []
        for _ in range(count):
            number = self._row // self.window
            due = [arm for arm in arms if number % self.strides.get(arm, 1) == 0]
            pending.append(self.enqueue(next(orders(due, self._rng))))
            self._turn += 1
            self._row += 1
        self.wait([mark for marks in pending for mark in marks])
        return tuple(self._read(marks) for marks in pending)

    def until(self, arms: Sequence[int], last: int, turn: int) -> None:
        """Part of a row: ends with a launch of arm `last`, whichever of its two comes by chance.

        Of many arms, some: each check would launch all of them.
        """
        others = [arm for arm in self.dense(arms) if arm != last]
        some = self._rng.sample(others, min(COMPANIONS, len(others)))
        order = next(orders([last, *some], self._rng))
        places = [place for place, arm in enumerate(order) if arm == last]
        self._turn = turn
        self.wait(self.enqueue(order[: self._rng.choice(places) + 1]))

    def enqueue(self, order: Sequence[int]) -> list[TimedLaunch]:
        byte = self._rng.randrange(1, 255)
        return [self.sampler.enqueue(arm, self._turn, byte) for arm in order]

    def wait(self, marks: Sequence[TimedLaunch]) -> None:
        for mark in marks:
            limit = time.monotonic() + self._limit_s
            while not mark.end.query():
                if time.monotonic() > limit:
                    raise Hang(mark.arm, self._limit_s)
                time.sleep(POLL_S)

    def _read(self, marks: Sequence[TimedLaunch]) -> Row:
        per_launch = 1000.0 / self.sampler.launches
        return Row(
            order=tuple(mark.arm for mark in marks),
            times_us=tuple(
                round(mark.start.elapsed_time(mark.end) * per_launch, 4) for mark in marks
            ),
        )


class WarmUp(msgspec.Struct, frozen=True, kw_only=True):
    """The result of warm-up."""

    spent_s: float
    drift: float
    rows_per_block: int


def warm_up(timer: Timer, arms: Sequence[int], longest_s: float = WARM_UP_MAX_S) -> WarmUp:
    """Runs rows until a window of them takes as long as the window before, or `longest_s` is over.

    The rows are not kept.
    """
    begun = time.monotonic()
    timer.rows(arms, 1)
    took = max(time.monotonic() - begun, 1e-5)
    before = drift = float("inf")
    while True:
        started = time.monotonic()
        medians: list[float] = []
        while time.monotonic() - started < WINDOW_S:
            count = max(1, round(BLOCK_S / took))
            at = time.monotonic()
            rows = timer.rows(arms, count)
            took = (time.monotonic() - at) / count
            medians += [sum(row.times_us) for row in rows]
        now = statistics.median(medians)
        drift, before = abs(now / before - 1.0), now
        spent = time.monotonic() - begun
        if drift < DRIFT or spent > longest_s:
            rows_per_block = max(1, round(BLOCK_S / took))
            return WarmUp(spent_s=spent, drift=drift, rows_per_block=rows_per_block)
