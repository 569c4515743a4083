"""Who has seen whose accesses: happens-before.

Agents are the warps (their ordinary accesses), the warps again (their accesses to tensor memory),
and the slots of the engines: copies by the mbarrier that they signal, MMAs, bulk stores' reads and
their writes by who issues them. `seen[w, a]` is the time up to which agent a's accesses are ordered
before what warp w does now; barriers, mbarriers and atomics carry such rows from one warp to the
next. One more agent stands for all CTAs of earlier waves, and one for a launch that may still run.
On the diagonal stands a warp's own last meeting point, so that lanes of one warp that exchange data
without __syncwarp() are found too. An access has the time `now`; whatever orders accesses ends that
time, so that later ones are told from earlier ones.
"""

from __future__ import annotations

import ctypes

import numpy as np

from warpsim import compiled
from warpsim.machine.core.arrays import Array, Mask, sparse_zeros
from warpsim.machine.core.warps import Warps

SLOTS = 32
"""Of each engine: agents that share one pass for the same."""
FOREVER = 1 << 42
THREAD_BITS = 20
THREAD = (1 << THREAD_BITS) - 1
SITE_BITS = 16
SITE = (1 << SITE_BITS) - 1
LONGEST = 1 << 63 - THREAD_BITS - SITE_BITS
"""Times that an epoch has room for."""
TIME = THREAD_BITS + SITE_BITS
"""An access is an epoch: its thread (agent * 32 + lane), above it the number of its instruction + 1
(0: not known), and from this bit on its time."""
_NONE = np.zeros(1, bool)


_MEET = (*[ctypes.py_object] * 3, ctypes.c_int64)
FENCES = 8
"""Proxy fences of a thread whose times are kept: a writer may be that many stages ahead."""


class ProxyFences:
    """fence.proxy.async of one state space: when each thread made its last ones, and had seen what
    at the very last."""

    def __init__(self, warps: int, agents: int) -> None:
        self.times = sparse_zeros((warps, FENCES, 32), np.int64)
        """The latest first."""
        self.seen = sparse_zeros((warps, agents), np.int64)
        self._rows: dict[int, Array] = {}
        """Copies of its rows, until the next fence."""

    def row(self, warp: int) -> Array:
        """What a warp had seen at its last one, which nobody may change."""
        row = self._rows.get(warp)
        if row is None:
            row = self._rows[warp] = self.seen[warp].copy()
        return row

    def forget(self) -> None:
        """Compiled code has made some."""
        self._rows.clear()

    def fence(self, warp: int, lanes: Array | slice, now: int, seen: Array) -> None:
        """Lanes of a warp make one."""
        times = self.times[warp]
        times[1:, lanes] = times[:-1, lanes]
        times[0, lanes] = now
        self.seen[warp] = seen
        self._rows.pop(warp, None)


class PartialMeetings:
    """Which lanes of a warp have met: kept once a __syncwarp() has left some out."""

    def __init__(self, warps: int) -> None:
        self._last = np.full(warps, -1)
        """When each warp last met in part: its diagonal, unless it has met as a whole since."""
        self._whole = np.zeros(warps, np.int64)
        """When it had last met as a whole by then."""
        self._met = np.zeros((warps, 32, 32), np.int64)
        """Up to when each lane has seen what each other lane did."""

    def meet(self, warp: int, lanes: Array, diagonal: int, now: int) -> None:
        """Lanes of a warp meet; `lanes` are their numbers."""
        if diagonal != self._last[warp]:
            self._whole[warp] = diagonal
        met = self._met[warp]
        met[lanes] = met[lanes].max(axis=0)
        met[np.ix_(lanes, lanes)] = self._last[warp] = now

    def unordered(self, warps: Array, threads: Array, epochs: Array, diagonal: Array) -> Array:
        """Which earlier accesses are those of lanes of the own warp that have not met these."""
        thread, time = epochs & THREAD, epochs >> TIME
        own = (thread >> 5 == warps) & (thread != threads) & (threads >= 0)
        whole = np.where(diagonal == self._last[warps], self._whole[warps], diagonal)
        return own & (whole < time) & (self._met[warps, threads & 31, thread & 31] < time)


class Clocks:
    """Vector clocks of `warps` warps.

    now: the first time, after all times of earlier waves.
    """

    ordered = True
    """Whether they tell anything."""

    def __init__(self, warps: int, *, now: int = 1) -> None:
        self.warps = warps
        self.tensor_memory = warps
        self.copy = 2 * warps
        self.tensor = self.copy + SLOTS
        self.store = self.tensor + SLOTS
        self.output = self.store + SLOTS
        self.earlier = self.output + SLOTS
        """All CTAs of earlier waves."""
        self.launched = self.earlier + 1
        """A launch that began before this one and may still run."""
        self.agents = self.launched + 1
        agents = 2 * self.agents
        self.seen = sparse_zeros((warps, agents), np.int64, dense=True)
        """By warp; a row has every agent twice, the second time what was also acquired formally."""
        self.wide = np.zeros(warps, bool)
        """Which warps may have seen what warps of other CTAs did."""
        self.fences = False
        """Whether any warp has made one for other CTAs."""
        self.unsure = False
        """Whether any warp has seen a flag and acquired nothing."""
        self.partial: PartialMeetings | None = None
        """None until lanes of a warp meet without the others."""
        self.narrow = False
        """Whether any CTA has released something to another in the scope of a CTA."""
        self.proxy = {space: ProxyFences(warps, agents) for space in ("shared", "global")}
        self._performed = np.full(agents, FOREVER)
        """Up to when each agent's accesses have reached all CTAs: engines' do when they land."""
        self._performed[: 2 * warps] = self._performed[self.agents :][: 2 * warps] = 0
        self._fenced = sparse_zeros((warps, agents), np.int64)
        """What each warp had seen at its last fence."""
        self.fenced_init = np.zeros(warps, np.int64)
        """When each warp last made a fence.mbarrier_init."""
        self.fenced_after = sparse_zeros((warps, agents), np.int64)
        """What each warp had seen at its last tcgen05.fence::after_thread_sync."""
        self.fenced_before = np.zeros(warps, np.int64)
        """When each warp last made a tcgen05.fence::before_thread_sync."""
        self.now = now

    def earlier_row(self) -> Array:
        """What somebody learns who acquires what an earlier wave released: all that it did."""
        row = np.zeros(2 * self.agents, np.int64)
        row[self.earlier :: self.agents] = FOREVER
        return row

    def tick(self) -> int:
        self.now += 1
        return self.now

    def copy_agent(self, barrier: int) -> int:
        """The agent of the copies that signal the mbarrier at an arena offset."""
        return self.copy + (barrier >> 3) % SLOTS

    # Synchronisation

    def converge(self, warp: int) -> None:
        """The lanes of a warp have met: each has seen what the others did."""
        self.seen[warp, warp :: self.agents] = self.now
        self.now += 1

    def converge_part(self, warp: int, lanes: Array) -> None:
        """These lanes of a warp have met: for engines and other warps it counts as a whole."""
        if self.partial is None:
            self.partial = PartialMeetings(self.warps)
        self.partial.meet(warp, lanes, int(self.seen[warp, warp]), self.now)
        self.converge(warp)

    def _own(self, warp: int) -> Array:
        """What a warp has seen, and what it has done."""
        row: Array = self.seen[warp].copy()
        row[warp :: self.agents] = row[self.tensor_memory + warp :: self.agents] = self.now
        return row

    def release(self, warp: int) -> Array:
        """What somebody learns who acquires what this warp now releases."""
        row = self._own(warp)
        self.now += 1
        return row

    def fenced(self, warp: int) -> Array:
        """What somebody in another CTA learns from an ordinary store or a relaxed atomic of a warp:
        what fences have made visible, the warp's own or those of who did it."""
        return np.minimum(self._own(warp), np.maximum(self._performed, self._fenced[warp]))

    def release_narrowly(self, warp: int) -> Array:
        """The same as release() for a warp of another CTA, where the release is of a CTA's scope:
        the order in which things happen, of which only what fences have made visible is formal."""
        self.narrow = True
        visible = self.fenced(warp)[self.agents :]
        row = self.release(warp)
        row[self.agents :] = visible
        return row

    def fence(self, warp: int) -> None:
        """A memory fence for other CTAs, such as __threadfence()."""
        self.fences = True
        self._fenced[warp] = self.release(warp)
        self._performed[warp :: self.agents] = self._fenced[warp, warp]
        if self.unsure:
            self.seen[warp, self.agents :] = self.seen[warp, : self.agents]

    def fence_init(self, warp: int) -> None:
        """fence.mbarrier_init."""
        self.fenced_init[warp] = self.now
        self.now += 1

    def fence_tensor_memory(self, warp: int, *, before: bool) -> None:
        """tcgen05.fence, before or after what synchronises threads."""
        if before:
            self.fenced_before[warp] = self.now
            self.now += 1
        else:
            self.fenced_after[warp] = self.seen[warp]

    def meet(self, groups: Array) -> None:
        """The warps of each group, [groups, warps of one CTA], have met at a barrier: each has seen
        what the others have done and seen. As long as none has heard from other CTAs, that is
        little of a row of all agents."""
        if compiled.is_loaded():
            compiled.function("kx_meet", *_MEET)(self.seen, self.wide, groups, self.now)
        else:
            for group in groups:
                row = self.seen[group].max(axis=0)
                for own in (group, self.agents + group):
                    row[own] = np.maximum(row[own], self.now)
                    row[self.warps + own] = np.maximum(row[self.warps + own], self.now)
                self.seen[group] = row
                self.wide[group] = self.wide[group].any()
        self.now += 1

    def acquire(self, warp: int, row: Array, *, sure: bool = True, wide: bool = True) -> None:
        """sure: not just by having seen a flag; wide: what warps of other CTAs did may be in it."""
        self.wide[warp] |= wide
        if sure:
            np.maximum(self.seen[warp], row, out=self.seen[warp])
            return
        self.unsure = True
        first = self.seen[warp, : self.agents]
        np.maximum(first, row[: self.agents], out=first)

    def acquire_within(
        self, warp: int, other: int, time: int, columns: Array | None, known: Array
    ) -> None:
        """What another warp of the own CTA had done up to a time and then knew, of some columns or
        of all: it orders no lanes of one warp."""
        own, seen = self.seen[warp, warp], self.seen[warp]
        if columns is None:
            self.wide[warp] = True
            np.maximum(seen, known, out=seen)
        else:
            seen[columns] = np.maximum(seen[columns], known)
        did = [other, self.tensor_memory + other]
        did += [self.agents + agent for agent in did]
        seen[did] = np.maximum(seen[did], time)
        seen[warp] = own

    def columns_within(self, warps: Array) -> Array:
        """Of a row, those that a warp knows of which has heard of none but these."""
        engines = np.arange(self.copy, self.agents)
        first = np.concatenate([warps, self.tensor_memory + warps, engines])
        return np.concatenate([first, self.agents + first])

    def knows(self, warp: int, other: int, time: int) -> bool:
        """Whether a warp has seen what another had done up to a time, and with it all that that one
        had seen."""
        return bool((self.seen[warp, other :: self.agents] >= time).all())

    def is_quiet(self, warps: Warps) -> bool:
        """Whether ordinary stores of these warps tell other CTAs nothing: see fenced()."""
        if self.fences:
            return False
        engines = self.seen[warps.warps, self.copy : self.agents]
        formal = self.seen[warps.warps, self.agents + self.copy :]
        return not (engines.any() or formal.any())

    def learn(self, warp: int, agent: int, time: int) -> None:
        """A warp has seen what an engine did up to a time."""
        own = self.seen[warp, agent :: self.agents]
        np.maximum(own, time, out=own)

    def wait_for_launch(self, warp: int) -> None:
        """A warp has waited for the launch that began before this one."""
        self.learn(warp, self.launched, FOREVER)

    def landed(self, agent: int, seen: Array) -> Array:
        """What an engine hands over when an operation is done: its effects, and the asynchronous
        effects that the issuing thread had `seen` before."""
        row = self.engines_only(seen)
        row[agent :: self.agents] = self.now
        return row

    def committed(self, agent: int, warp: int, seen: Array) -> Array:
        """What tcgen05.commit hands over for a warp: what the tensor core has done for it, and all
        that was ordered before what it asked for, but for its own ordinary accesses."""
        row: Array = seen.copy()
        row[warp :: self.agents] = 0
        row[agent :: self.agents] = self.now
        return row

    def engines_only(self, row: Array) -> Array:
        """What relaxed operations hand over: asynchronous effects, which order themselves."""
        engines = row.copy()
        engines[: self.warps] = engines[self.agents :][: self.warps] = 0
        return engines

    def fence_async(self, space: str, warps: Array, mask: Mask) -> None:
        """fence.proxy.async by the lanes of `mask`."""
        fences = self.proxy[space]
        for position, warp in enumerate(warps.tolist()):
            lanes = slice(None) if mask is True else mask[position]
            fences.fence(warp, lanes, self.now, self.seen[warp])

    # Accesses

    def stamp(self, number: int) -> int:
        """An access of now by an instruction, but for its thread."""
        site = number + 1 if number + 1 < 1 << SITE_BITS else 0
        return self.now << TIME | site << THREAD_BITS

    def epoch(self, thread: Array | int, number: int) -> Array:
        """An access of now by the instruction of a number."""
        return np.asarray(thread | np.int64(self.stamp(number)))

    def unordered(self, warps: Array, threads: Array, epochs: Array) -> Array:
        """Which earlier accesses are not ordered before these threads' accesses."""
        if not epochs.any():
            return _NONE
        thread = epochs & THREAD
        bad: Array = (self.seen[warps, thread >> 5] < epochs >> TIME) & (thread != threads)
        if self.partial is not None:
            bad |= self.partial.unordered(warps, threads, epochs, self.seen[warps, warps])
        return bad

    def not_acquired(self, warps: Array, threads: Array, epochs: Array) -> Array:
        """Which earlier accesses are ordered before these threads' by flags alone, that were seen
        with no acquire and no fence."""
        thread = epochs & THREAD
        known = self.seen[warps, self.agents + (thread >> 5)]
        return (known < epochs >> TIME) & (thread != threads)

    def unseen(self, row: Array, issuer: int, epochs: Array) -> Array:
        """The same of an engine's accesses: `row` is what the issuing thread had seen."""
        if not epochs.any():
            return _NONE
        thread = epochs & THREAD
        return (row[thread >> 5] < epochs >> TIME) & (thread != issuer)

    def unfenced(self, space: str, seen: Array, fenced: Array, issuer: int, epochs: Array) -> Array:
        """Which words an ordinary store wrote with no proxy fence on the way to the engine: `seen`
        is what the issuing thread had seen, `fenced` the same at its warp's own last fence."""
        thread, time = epochs & THREAD, epochs >> TIME
        by_warp = (thread < self.warps * 32) & (time > 0)
        warp = np.where(by_warp, thread >> 5, 0)
        # Relaxed synchronisation, too, tells of a fence (see Neighbours).
        known = np.maximum(seen[warp], seen[self.tensor_memory + warp])
        known = np.where(thread == issuer, FOREVER, known)
        fences = np.moveaxis(self.proxy[space].times[warp, :, thread & 31], -1, 0)
        after = fences >= time
        # If all that is known of came after it, an earlier one may have been forgotten.
        own = (after & (fences <= known)).any(axis=0) | after.all(axis=0)
        return by_warp & ~own & (fenced[warp] < time)


class Unordered(Clocks):
    """Where no order is to be checked: everybody has seen and fenced everything from the beginning,
    so that all rows are one, and nobody learns anything."""

    ordered = False

    def __init__(self, warps: int, *, now: int = 1) -> None:
        super().__init__(warps, now=now)
        everything = np.broadcast_to(np.full(2 * self.agents, FOREVER), self.seen.shape)
        self.seen = self._fenced = self.fenced_after = everything
        self.fenced_init.fill(FOREVER)
        self.fenced_before.fill(FOREVER)
        for fences in self.proxy.values():
            fences.times = np.broadcast_to(np.int64(FOREVER), fences.times.shape)
            fences.seen = everything

    def converge(self, warp: int) -> None:
        """Of no order."""

    def converge_part(self, warp: int, lanes: Array) -> None:
        """Of no order."""

    def release(self, warp: int) -> Array:
        return self.seen[warp]

    def release_narrowly(self, warp: int) -> Array:
        return self.seen[warp]

    def fenced(self, warp: int) -> Array:
        return self.seen[warp]

    def fence(self, warp: int) -> None:
        """Of no order."""

    def fence_init(self, warp: int) -> None:
        """Of no order."""

    def fence_tensor_memory(self, warp: int, *, before: bool) -> None:
        """Of no order."""

    def fence_async(self, space: str, warps: Array, mask: Mask) -> None:
        """Of no order."""

    def meet(self, groups: Array) -> None:
        """Of no order."""

    def acquire(self, warp: int, row: Array, *, sure: bool = True, wide: bool = True) -> None:
        """Of no order."""

    def learn(self, warp: int, agent: int, time: int) -> None:
        """Of no order."""
