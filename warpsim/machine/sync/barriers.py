"""Barriers of a CTA and of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.warps import ALL, lanes_of, spell_warps
from warpsim.machine.sync.gates import Fragment, WaitGate, scalar
from warpsim.machine.wave.machine import Machine, WarpSet

BARRIERS = 16
"""Of a CTA."""
GROUP = 4
"""Warps of a warpgroup."""


@dataclass(slots=True, eq=False)
class Barrier:
    """Lanes that arrived, by warp, and what they release to those that leave."""

    generation: int = 0
    arrived: dict[int, int] = field(default_factory=dict)
    again: int = 0
    """Arrivals of warps that had arrived already: each counts as another warp."""
    threads: int = 0
    """That complete it, as the first to arrive says."""
    reduces: bool = False
    """Whether bar.red uses it, as the last to arrive says."""
    seen: Array | None = None
    released: dict[int, Array] = field(default_factory=dict)
    """By generation."""
    votes: list[bool] = field(default_factory=list)
    results: dict[int, list[bool]] = field(default_factory=dict)

    def arrive(self, fragment: Fragment) -> None:
        before = self.arrived.get(fragment.warp, 0)
        self.again += bool(before & fragment.mask)
        self.arrived[fragment.warp] = before | fragment.mask

    def release(self, row: Array) -> None:
        self.seen = row if self.seen is None else np.maximum(self.seen, row)

    def advance(self) -> None:
        """All have arrived: begins the next generation."""
        self.results = {self.generation: self.votes}
        self.released = {} if self.seen is None else {self.generation: self.seen}
        self.generation += 1
        self.arrived, self.votes, self.seen, self.again = {}, [], None, 0


class CtaBarriers(dict[tuple[int, int], Barrier]):
    """By CTA and number."""


VoteOperation: TypeAlias = Literal["popc", "and", "or"]


class Vote(NamedTuple):
    """The reduction that a barrier makes of its threads' predicates."""

    operation: VoteOperation
    predicate: int
    """Slot."""
    negated: bool
    target: int
    """Slot."""


@dataclass(frozen=True, eq=False)
class CtaBarrier(WaitGate):
    """A named barrier; whole warps count, whatever lanes execute it."""

    number: int
    """Slot."""
    count: int
    """Slot: threads that complete it, 0 for all."""
    aligned: bool
    """Whether the lanes of a warp must execute it together."""
    waits: bool
    vote: Vote | None
    joins_all = True

    def _barrier(self, machine: Machine, fragment: Fragment) -> Barrier:
        cta = machine.cta_of(fragment.warp).place
        key = cta, scalar(machine, self.number, fragment)
        return machine.state(CtaBarriers).setdefault(key, Barrier())

    def _wanted(self, machine: Machine, fragment: Fragment) -> int:
        """Threads that complete it; without a count, those of all warps that have not exited."""
        count = scalar(machine, self.count, fragment)
        return count or 32 * machine.cta_of(fragment.warp).live_warps

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = self._barrier(machine, fragment)
        if self.aligned and fragment.mask | machine.exited[fragment.warp] != ALL:
            machine.report(
                "divergent-aligned",
                f"{self.site.opcode} executed by lanes {fragment.mask:#010x} only.",
                self.site,
                fragment.warp,
            )
        self._check(machine, fragment, barrier)
        machine.changed.append(barrier)
        barrier.arrive(fragment)
        barrier.release(machine.clocks.release(fragment.warp))
        if self.vote is not None:
            votes = machine.value(self.vote.predicate, fragment.warp)
            barrier.votes += [
                bool(votes[lane]) != self.vote.negated for lane in lanes_of(fragment.mask)
            ]
        fragment.generation = barrier.generation
        self._complete(machine, fragment, barrier)
        return not self.waits or super().enter(machine, fragment)

    def gathers(self, machine: Machine, fragment: Fragment) -> bool:
        # To one with a count warps may come by mistake, or arrive only: who comes first tells.
        return self.waits and self.vote is None and not scalar(machine, self.count, fragment)

    def pass_together(
        self, machine: Machine, warps: WarpSet, fragments: Sequence[Fragment]
    ) -> bool:
        if self.vote is not None or not self.waits:
            return False
        if len(fragments) < machine.cta_of(fragments[0].warp).live_warps or warps.by_cta is None:
            return False
        number, count = (_uniform(warps.R[slot]) for slot in (self.number, self.count))
        ctas, size = warps.by_cta[:, 0] % machine.resident, 32 * warps.by_cta.shape[1]
        state, known = machine.state(CtaBarriers), machine.ctas
        if number is None or number >= BARRIERS or count != 0:
            return False
        if any(f.mask | machine.exited[f.warp] != ALL for f in fragments):
            return False
        barriers = [state.setdefault((cta, number), Barrier()) for cta in ctas.tolist()]
        if any(barrier.arrived for barrier in barriers):
            return False
        if any(32 * known[cta].live_warps != size for cta in ctas.tolist()):
            return False
        for barrier in barriers:
            barrier.threads, barrier.reduces = 32 * machine.warps_per_cta, False
            barrier.advance()
        machine.clocks.meet(warps.by_cta)
        return True

    def _check(self, machine: Machine, fragment: Fragment, barrier: Barrier) -> None:
        number, count = (scalar(machine, slot, fragment) for slot in (self.number, self.count))
        if number >= BARRIERS or count % 32:
            sentence = f"barrier {number} for {count or 'all'} threads."
            machine.report("barrier-number", sentence, self.site, fragment.warp)
        threads = count or 32 * machine.warps_per_cta
        if barrier.arrived and barrier.threads != threads:
            sentence = (
                f"barrier {number} for {threads} threads, and others came to it for "
                f"{barrier.threads}."
            )
            machine.report("barrier-number", sentence, self.site, fragment.warp)
        reduces = self.vote is not None
        if barrier.arrived and barrier.reduces != reduces:
            which = "without" if reduces else "with"
            sentence = f"barrier {number}, to which others came {which} a reduction."
            machine.report("barrier-number", sentence, self.site, fragment.warp)
        barrier.threads, barrier.reduces = threads, reduces

    def _complete(self, machine: Machine, fragment: Fragment, barrier: Barrier) -> None:
        # A warp counts as 32 threads, once all its lanes that are left have come.
        whole = 32 * barrier.again + sum(
            32
            for warp, lanes in barrier.arrived.items()
            if self.aligned or lanes | machine.exited[warp] == ALL
        )
        if whole and whole >= self._wanted(machine, fragment):
            machine.changed.append(barrier)
            barrier.advance()

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = self._barrier(machine, fragment)
        if barrier.generation == fragment.generation:
            # Warps that have exited since may have been the ones that were missing.
            self._complete(machine, fragment, barrier)
        return barrier.generation != fragment.generation

    def obstacle(self, machine: Machine, fragment: Fragment) -> object:
        return self._barrier(machine, fragment)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        barrier = self._barrier(machine, fragment)
        row = barrier.released.get(fragment.generation)
        if row is not None:
            place, clocks = machine.cta_of(fragment.warp).place, machine.clocks
            wide = bool(clocks.wide[place :: machine.resident].any())
            clocks.acquire(fragment.warp, row, wide=wide)
        if self.vote is None:
            return
        votes = barrier.results[fragment.generation]
        result: int | bool = sum(votes)
        if self.vote.operation != "popc":
            result = all(votes) if self.vote.operation == "and" else any(votes)
        machine.value(self.vote.target, fragment.warp)[lanes_of(fragment.mask)] = result

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        barrier = self._barrier(machine, fragment)
        number = scalar(machine, self.number, fragment)
        warps = sorted(machine.warp_of(place) for place in barrier.arrived)
        lanes = sum(lanes.bit_count() for lanes in barrier.arrived.values()) + 32 * barrier.again
        return (
            f"barrier {number}: {lanes} of {self._wanted(machine, fragment)} threads "
            f"arrived ({spell_warps(warps)})"
        )

    def missing(self, machine: Machine, fragment: Fragment) -> dict[int, int]:
        barrier = self._barrier(machine, fragment)
        return _absent(machine, barrier, machine.warps_of(machine.cta_of(fragment.warp).place))


@dataclass(frozen=True, eq=False)
class WarpgroupBarrier(WaitGate):
    """The four warps of a warpgroup, all their lanes that are left."""

    def _barrier(self, machine: Machine, fragment: Fragment) -> Barrier:
        cta, group = machine.cta_of(fragment.warp).place, self._warps(machine, fragment)[0]
        return machine.state(CtaBarriers).setdefault((cta, BARRIERS + group), Barrier())

    def _warps(self, machine: Machine, fragment: Fragment) -> list[int]:
        """By their places."""
        places = list(machine.warps_of(machine.cta_of(fragment.warp).place))
        first = places.index(fragment.warp) // GROUP * GROUP
        return places[first : first + GROUP]

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = self._barrier(machine, fragment)
        machine.changed.append(barrier)
        barrier.arrive(fragment)
        barrier.release(machine.clocks.release(fragment.warp))
        fragment.generation = barrier.generation
        return super().enter(machine, fragment)

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = self._barrier(machine, fragment)
        if barrier.generation == fragment.generation and not self.missing(machine, fragment):
            machine.changed.append(barrier)
            barrier.advance()
        return barrier.generation != fragment.generation

    def obstacle(self, machine: Machine, fragment: Fragment) -> object:
        return self._barrier(machine, fragment)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        row = self._barrier(machine, fragment).released.get(fragment.generation)
        if row is not None:
            machine.clocks.acquire(fragment.warp, row, wide=False)

    def missing(self, machine: Machine, fragment: Fragment) -> dict[int, int]:
        return _absent(machine, self._barrier(machine, fragment), self._warps(machine, fragment))


def _uniform(values: Array) -> int | None:
    """The value of all lanes; None if they differ."""
    first = values[0, 0]
    return int(first) if (values == first).all() else None


def _absent(machine: Machine, barrier: Barrier, places: Iterable[int]) -> dict[int, int]:
    """Lanes of some warps that have neither arrived nor exited."""
    absent = {
        place: ALL & ~barrier.arrived.get(place, 0) & ~machine.exited[place] for place in places
    }
    return {place: lanes for place, lanes in absent.items() if lanes}


class ClusterBarriers:
    """The barrier of each cluster, and the generation at which each warp last arrived."""

    def __init__(self) -> None:
        self.barriers: dict[int, Barrier] = {}
        self.arrivals: dict[int, int] = {}
        self.due: dict[int, int] = {}
        """The lanes of each warp that have arrived and not waited since."""
        self.within: dict[tuple[int, int], Array] = {}
        """What relaxed arrivals hand over to the warps of their own CTA, whose accesses one SM does
        in order, by generation and CTA."""

    def of(self, machine: Machine, fragment: Fragment) -> Barrier:
        return self.barriers.setdefault(machine.cta_of(fragment.warp).cluster, Barrier())

    def pass_within(self, generation: int, cta: int, row: Array) -> None:
        """A relaxed arrival; two generations before nobody waits for any more."""
        self.within.pop((generation - 2, cta), None)
        known = self.within.get((generation, cta))
        self.within[generation, cta] = row if known is None else np.maximum(known, row)


def _complete_cluster(machine: Machine, fragment: Fragment, barrier: Barrier) -> None:
    cluster, gone = machine.cta_of(fragment.warp).cluster, []
    for cta in machine.ctas:
        if cta.cluster != cluster:
            continue
        for warp in range(machine.warps_per_cta):
            place = machine.warp_place(cta.place, warp)
            if barrier.arrived.get(place, 0) | machine.exited[place] != ALL:
                return
            if place not in barrier.arrived:
                gone.append(place)
    if barrier.arrived:
        # Warps that have exited release nothing, but what engines did before that is over.
        for place in gone:
            barrier.release(machine.clocks.engines_only(machine.clocks.release(place)))
        machine.changed.append(barrier)
        barrier.advance()


@dataclass(frozen=True, eq=False)
class ClusterArrive(WaitGate):
    """Every thread of the cluster that has not exited arrives."""

    releases: bool

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        state = machine.state(ClusterBarriers)
        barrier = state.of(machine, fragment)
        due = state.due.get(fragment.warp, 0)
        state.due[fragment.warp] = due | fragment.mask
        if due & fragment.mask:
            machine.report(
                "over-arrival",
                "a second barrier.cluster.arrive with no wait between.",
                self.site,
                fragment.warp,
            )
        machine.changed.append(barrier)
        barrier.arrive(fragment)
        row = machine.clocks.release(fragment.warp)
        if not self.releases:
            state.pass_within(barrier.generation, machine.cta_of(fragment.warp).place, row)
            row = machine.clocks.engines_only(row)
        barrier.release(row)
        state.arrivals[fragment.warp] = barrier.generation
        _complete_cluster(machine, fragment, barrier)
        return True


class ClusterWait(WaitGate):
    """Waits for the arrivals of the warp's last generation."""

    joins_all = True

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        state = machine.state(ClusterBarriers)
        due = state.due.get(fragment.warp, 0)
        state.due[fragment.warp] = due & ~fragment.mask
        if fragment.mask & ~due:
            machine.report(
                "cluster-barrier",
                "a barrier.cluster.wait with no arrive before it.",
                self.site,
                fragment.warp,
            )
        return super().enter(machine, fragment)

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        state = machine.state(ClusterBarriers)
        barrier, arrived = state.of(machine, fragment), state.arrivals.get(fragment.warp, -1)
        if barrier.generation <= arrived:
            _complete_cluster(machine, fragment, barrier)
        return barrier.generation > arrived

    def obstacle(self, machine: Machine, fragment: Fragment) -> object:
        return machine.state(ClusterBarriers).of(machine, fragment)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        state = machine.state(ClusterBarriers)
        arrived = state.arrivals.get(fragment.warp, -1)
        row = state.of(machine, fragment).released.get(arrived)
        if row is not None:
            machine.clocks.acquire(fragment.warp, row)
            within = state.within.get((arrived, machine.cta_of(fragment.warp).place))
            if within is not None:
                machine.clocks.acquire(fragment.warp, within)
            machine.clocks.converge(fragment.warp)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        barrier = machine.state(ClusterBarriers).of(machine, fragment)
        warps = [
            f"{machine.cta_of(place).number}.{machine.warp_of(place)}" for place in barrier.arrived
        ]
        return f"the cluster barrier: arrived (CTA.warp): {', '.join(sorted(warps)) or 'none'}"

    def missing(self, machine: Machine, fragment: Fragment) -> dict[int, int]:
        barrier = machine.state(ClusterBarriers).of(machine, fragment)
        cluster = machine.cta_of(fragment.warp).cluster
        ctas = [cta.place for cta in machine.ctas if cta.cluster == cluster]
        return _absent(machine, barrier, [p for cta in ctas for p in machine.warps_of(cta)])
