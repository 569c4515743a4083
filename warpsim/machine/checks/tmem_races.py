"""Tensor memory's happens-before: MMAs, copies, shifts, loads and stores that overtake each other.

All of them are asynchronous. A load or a store of a warp is over when the warp has waited for it
(tcgen05.wait); what the tensor core does (an MMA, a copy, a shift), when its commit has arrived at
an mbarrier that somebody waits for. Between threads, tcgen05.fence::before_thread_sync and
::after_thread_sync stand around what synchronises them; hardware has not been seen to need them, so
that a missing one is formal.

What one warp asks of the tensor core stays in order. PTX promises that of some pairs only, and a
copy after the MMA that reads what it overwrites is not among them ("Pipelined tcgen05
Instructions"); CUTLASS and DeepGEMM rely on it.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.clocks import FOREVER, SLOTS, THREAD, THREAD_BITS, Clocks
from warpsim.machine.core.site import Site
from warpsim.machine.core.tmem_areas import Area, Layers, columns_of, distinct
from warpsim.machine.memory.residents import Residents

_PENDING = FOREVER << THREAD_BITS
"""Added to a thread: an access of its that is not over yet."""


class TmemRaces:
    """The last accesses to tensor memory, as epochs (see Clocks); FOREVER: not over yet."""

    def __init__(self, residents: Residents, clocks: Clocks) -> None:
        self.residents = residents
        self.clocks = clocks
        self.readers = -(-residents.warps_per_cta // 4)
        """Warps that reach the same lanes."""
        self._written = defaultdict[int, Layers](Layers)
        """By CTA, as all of these."""
        self._read = [defaultdict[int, Layers](Layers) for _ in range(self.readers + 1)]
        """By reader; the last is the tensor core."""
        self._asked = defaultdict[int, Layers](Layers)
        """When a warp asked for the copy or the shift that wrote there last; 0: something else."""
        self._copied = False
        """Whether there have been any."""
        self._checked: set[tuple[int, Area, tuple[Area, ...]]] = set()
        """(issuing warp, written, read) of what the tensor core was asked since warps last used
        tensor memory: what one warp asks stays in order."""
        self._writing = defaultdict[int, Counter[Area]](Counter)
        """Operations of the tensor core that have been issued, will write there and have not
        landed."""
        self._reading = defaultdict[int, Counter[Area]](Counter)
        """The same of those that will read there."""

    def _warp(self, place: int) -> int:
        """The thread that a warp's accesses to tensor memory count as."""
        return (self.clocks.tensor_memory + place) << 5

    def _now(self, thread: int) -> int:
        """The epoch of an access of now."""
        return self.clocks.now << THREAD_BITS | thread

    def _column(self, place: int) -> int:
        return self.residents.warp_of(place) // 4

    def _readers(self, area: Area) -> list[int]:
        """The epochs of all reads of an area."""
        return [epoch for reader in self._read for epoch in reader[area.cta].of(area)]

    def _readers_by_place(self, area: Area) -> Array:
        return np.stack([reader[area.cta].array(area) for reader in self._read])

    def clear(self, cta: int, first: int, columns: int) -> None:
        """A new allocation: nobody has used it."""
        area = columns_of(cta, first, first + columns)
        for layers in (self._written, *self._read):
            layers[cta].put(area, 0)

    def busy(self, cta: int, first: int, columns: int) -> bool:
        """Whether something of the tensor core, a load or a store there is not over."""
        area = columns_of(cta, first, first + columns)
        by_warps = (self._written, *self._read[:-1])
        return (
            area.overlaps(self._writing[cta])
            or area.overlaps(self._reading[cta])
            or any(epoch >= _PENDING for layers in by_warps for epoch in layers[cta].of(area))
        )

    def unseen(self, cta: int, first: int, columns: int, place: int) -> str:
        """Who has used columns that a warp frees, with nothing that orders the two; or nobody."""
        area, seen = columns_of(cta, first, first + columns), self.clocks.seen[place]
        for epoch in sorted({*self._wrote(area), *self._readers(area)}):
            agent, time = (epoch & THREAD) >> 5, epoch >> THREAD_BITS
            if agent != self._warp(place) >> 5 and seen[agent] < time:
                return self._agent(agent)
        return ""

    # Loads and stores of warps

    def load(self, area: Area, place: int, site: Site) -> None:
        """A warp's load is issued."""
        self._checked.clear()
        written = self._written[area.cta].of(area)
        self._after_writes("read", area, written, place, site)
        self._own_pending(written, "read", "stored", area, place, site)
        self._read[self._column(place)][area.cta].put(area, _PENDING | self._warp(place))

    def loaded(self, area: Area, place: int) -> None:
        """The warp has waited for it."""
        self._checked.clear()
        self._read[self._column(place)][area.cta].put(area, self._now(self._warp(place)))

    def store(self, area: Area, place: int, site: Site) -> None:
        """A warp's store is issued."""
        self._checked.clear()
        if area.overlaps(self._reading[area.cta]):
            sentence = (
                f"{self._name(area)} is written here, and the tensor core has yet to read it."
            )
            self.residents.report("tmem-race", sentence, site, place)
            return
        self._after_writes("written", area, self._written[area.cta].of(area), place, site)
        epochs = self._readers(area)
        self._own_pending(epochs, "written", "loaded", area, place, site)
        own = self._warp(place)
        if not self._ordered(epochs, place, own):
            self._check("written", "read", self._readers_by_place(area), place, own, site)
        self._written[area.cta].put(area, _PENDING | own)
        if self._copied:
            self._asked[area.cta].put(area, 0)

    def stored(self, area: Area, place: int) -> None:
        """The warp has waited for it."""
        self._checked.clear()
        self._written[area.cta].put(area, self._now(self._warp(place)))

    def _own_pending(
        self, epochs: list[int], now: str, before: str, area: Area, place: int, site: Site
    ) -> None:
        """A finding if the warp itself has not waited for its last access."""
        if _PENDING | self._warp(place) in epochs:
            sentence = (
                f"{self._name(area)} is {now} here, and the warp has not waited for what it "
                f"{before} there."
            )
            self.residents.report("tmem-race", sentence, site, place)

    def _after_writes(
        self, now: str, area: Area, written: list[int], place: int, site: Site
    ) -> None:
        if area.overlaps(self._writing[area.cta]):
            sentence = f"{self._name(area)} is {now} here, and the tensor core has yet to write it."
            self.residents.report("tmem-race", sentence, site, place)
            return
        own = self._warp(place)
        wrote = self._wrote(area) if self._copied else written
        if not self._ordered(wrote, place, own):
            self._check(now, "wrote", self._wrote_by_place(area), place, own, site)

    # The tensor core

    def issue(self, what: str, written: Area, issuer: Issuer, read: tuple[Area, ...]) -> None:
        """An operation of the tensor core that writes an area, and reads others, is issued."""
        self._writing[written.cta][written] += 1
        for area in read:
            self._reading[area.cta][area] += 1
        key = issuer.place, written, read
        if key in self._checked:
            return
        self._checked = {key, *(other for other in self._checked if other[0] == issuer.place)}
        place, own = issuer.place, self._core(issuer)
        epochs = [self._wrote(written), self._readers(written)]
        if self._copied:
            epochs += [distinct(self._in_doubt(area, place)) for area in read]
        else:
            epochs += [self._written[area.cta].of(area) for area in read]
        if all(self._ordered(epoch, place, own, self._warp(place)) for epoch in epochs):
            return
        for now, before, by_place in (
            (f"overwritten by {what}", "wrote", self._wrote_by_place(written)),
            (f"overwritten by {what}", "read", self._readers_by_place(written)),
            *((f"read by {what}", "wrote", self._in_doubt(area, place)) for area in read),
        ):
            # What the issuer itself has waited for needs no more.
            mine = ((by_place & THREAD) == self._warp(place)) & (by_place < _PENDING)
            self._check(now, before, np.where(mine, 0, by_place), place, own, issuer.site)

    def _wrote(self, area: Area) -> list[int]:
        """The last writes, or what is known to follow them: the tensor core read what it copied."""
        if self._copied:
            return distinct(self._wrote_by_place(area))
        return self._written[area.cta].of(area)

    def _wrote_by_place(self, area: Area) -> Array:
        written = self._written[area.cta].array(area)
        if not self._copied:
            return written
        read = self._read[-1][area.cta].array(area)
        return np.where((self._asked[area.cta].array(area) != 0) & (read > written), read, written)

    def _in_doubt(self, area: Area, place: int) -> Array:
        """The last writes that the tensor core may not have done when it reads for a warp. Copies
        and shifts it has, whoever asked for them, if the warp is ordered after the request."""
        written = self._written[area.cta].array(area)
        if not self._copied:
            return written
        array = self._asked[area.cta].array(area)
        known = self.clocks.seen[place][(array & THREAD) >> 5] >= array >> THREAD_BITS
        return np.where((array != 0) & known, 0, written)

    def asked(self, issuer: Issuer) -> int:
        """The epoch of a request of now."""
        return self._now(self._warp(issuer.place))

    def land(self, written: Area, issuer: Issuer, read: tuple[Area, ...], asked: int = 0) -> None:
        """It has landed; `asked`: when it was asked for, if it is a copy or a shift."""
        _finish(self._writing[written.cta], written)
        epoch = self._now(self._core(issuer))
        self._written[written.cta].put(written, epoch)
        if self._copied or asked:
            self._copied = True
            self._asked[written.cta].put(written, asked)
        for area in read:
            self._read[-1][area.cta].put(area, epoch)
            _finish(self._reading[area.cta], area)

    def _core(self, issuer: Issuer) -> int:
        return (self.clocks.tensor + issuer.place % SLOTS) << 5

    # Comparing

    def _ordered(self, epochs: list[int], place: int, own: int, waited: int = -1) -> bool:
        """Whether all of these accesses are ordered before this one, fences included, or are its
        own, or of a thread that has waited for them."""
        clocks = self.clocks
        for epoch in epochs:
            thread, time = epoch & THREAD, epoch >> THREAD_BITS
            if time == 0 or thread == own or (thread == waited and time < FOREVER):
                continue
            agent = thread >> 5
            if clocks.seen[place, agent] < time or clocks.fenced_after[place, agent] < time:
                return False
            warp = min(max(agent - clocks.tensor_memory, 0), clocks.warps - 1)
            if agent < clocks.copy and clocks.fenced_before[warp] < time:
                return False
        return True

    def _check(
        self, now: str, before: str, epochs: Array, place: int, own: int, site: Site
    ) -> None:
        """A finding for the first of the earlier accesses that is not ordered before this one."""
        clocks, thread, time = self.clocks, epochs & THREAD, epochs >> THREAD_BITS
        agent, other = thread >> 5, (thread != own) & (time > 0)
        bad = other & (clocks.seen[place][agent] < time)
        if bad.any():
            who = self._agent(int(agent[bad][0]))
            sentence = (
                f"tensor memory is {now} here; {who} {before} it, and nothing orders the two "
                "accesses."
            )
            self.residents.report("tmem-race", sentence, site, place)
            return
        bad = other & (clocks.fenced_after[place][agent] < time)
        if bad.any():
            self._formal("after", int(agent[bad][0]), place, site)
            return
        warp = np.clip(agent - clocks.tensor_memory, 0, clocks.warps - 1)
        bad = other & (agent < clocks.copy) & (clocks.fenced_before[warp] < time)
        if bad.any():
            self._formal("before", int(agent[bad][0]), place, site)

    def _formal(self, which: str, agent: int, place: int, site: Site) -> None:
        sides = {
            "after": "what made it sure of that and this",
            "before": "that and what made this warp sure of it",
        }
        self.residents.report(
            "missing-tcgen05-fence",
            f"{self._agent(agent)} used this tensor memory before, and there is no "
            f"tcgen05.fence::{which}_thread_sync between {sides[which]}.",
            site,
            place,
        )

    def _agent(self, agent: int) -> str:
        if agent >= self.clocks.tensor:
            return "the tensor core"
        return self.residents.warp_name(agent - self.clocks.tensor_memory)

    def _name(self, area: Area) -> str:
        number = self.residents.ctas[area.cta].number
        return f"columns {area.first} to {area.end - 1} of tensor memory of CTA {number}"


def _finish(operations: Counter[Area], area: Area) -> None:
    operations[area] -= 1
    if not operations[area]:
        del operations[area]
