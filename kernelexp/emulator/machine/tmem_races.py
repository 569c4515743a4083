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

from typing import NamedTuple, TypeAlias

import numpy as np

from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.asynchronous import Issuer
from kernelexp.emulator.machine.clocks import FOREVER, SLOTS, THREAD, THREAD_BITS, Clocks
from kernelexp.emulator.machine.residents import Residents
from kernelexp.emulator.machine.site import Site

GRANULE = 16
"""Lanes that every access takes together."""
_GRANULES = 128 // GRANULE
_COLUMNS = 512


Place: TypeAlias = tuple[int, slice, slice]


class Area(NamedTuple):
    """Columns [first, end) of granules of lanes of a CTA."""

    cta: int
    granules: tuple[int, int, int]
    """First, end, step."""
    first: int
    end: int

    @property
    def place(self) -> Place:
        return self.cta, slice(*self.granules), slice(self.first, self.end)


class TmemRaces:
    """The last accesses to tensor memory, as epochs (see Clocks); FOREVER: not over yet."""

    def __init__(self, residents: Residents, clocks: Clocks) -> None:
        self.residents = residents
        self.clocks = clocks
        shape = (residents.resident, _GRANULES, _COLUMNS)
        self.readers = -(-residents.warps_per_cta // 4)
        """Warps that reach the same lanes."""
        self._written = np.zeros(shape, np.int64)
        self._read = np.zeros((self.readers + 1, *shape), np.int64)
        """By reader; the last is the tensor core."""
        self._asked = np.zeros(shape, np.int64)
        """When a warp asked for the copy or the shift that wrote there last; 0: something else."""
        self._copied = False
        """Whether there have been any."""
        self._checked: set[tuple[int, Area, tuple[Area, ...]]] = set()
        """(issuing warp, written, read) of what the tensor core was asked since warps last used
        tensor memory: what one warp asks stays in order."""
        self._writing = np.zeros(shape, np.int16)
        """Operations of the tensor core that have been issued, will write there and have not
        landed."""
        self._reading = np.zeros(shape, np.int16)
        """The same of those that will read there."""

    def _warp(self, place: int) -> int:
        """The thread that a warp's accesses to tensor memory count as."""
        return (self.clocks.tensor_memory + place) << 5

    def _column(self, place: int) -> int:
        return self.residents.warp_of(place) // 4

    def clear(self, cta: int, first: int, columns: int) -> None:
        """A new allocation: nobody has used it."""
        window = slice(first, first + columns)
        self._written[cta, :, window] = 0
        self._read[:, cta, :, window] = 0

    def busy(self, cta: int, first: int, columns: int) -> bool:
        """Whether something of the tensor core, a load or a store there is not over."""
        window, pending = slice(first, first + columns), FOREVER << THREAD_BITS
        return bool(
            self._writing[cta, :, window].any()
            or self._reading[cta, :, window].any()
            or (self._written[cta, :, window] >= pending).any()
            or (self._read[:-1, cta, :, window] >= pending).any()
        )

    def unseen(self, cta: int, first: int, columns: int, place: int) -> str:
        """Who has used columns that a warp frees, with nothing that orders the two; or nobody."""
        window = slice(first, first + columns)
        wrote = self._wrote((cta, slice(None), window))
        used = np.concatenate([wrote[None], self._read[:, cta, :, window]])
        epochs = np.unique(used)
        agent, time = (epochs & THREAD) >> 5, epochs >> THREAD_BITS
        bad = (agent != self._warp(place) >> 5) & (self.clocks.seen[place][agent] < time)
        return self._agent(int(agent[bad][0])) if bad.any() else ""

    # Loads and stores of warps

    def load(self, area: Area, place: int, site: Site) -> None:
        """A warp's load is issued."""
        self._checked.clear()
        self._after_writes("read", area, place, site)
        self._own_pending(self._written[area.place], "read", "stored", area, place, site)
        thread = self._warp(place)
        self._read[(self._column(place), *area.place)] = FOREVER << THREAD_BITS | thread

    def loaded(self, area: Area, place: int) -> None:
        """The warp has waited for it."""
        self._checked.clear()
        epoch = self.clocks.epoch(self._warp(place))
        self._read[(self._column(place), *area.place)] = epoch

    def store(self, area: Area, place: int, site: Site) -> None:
        """A warp's store is issued."""
        self._checked.clear()
        if self._reading[area.place].any():
            sentence = (
                f"{self._name(area)} is written here, and the tensor core has yet to read it."
            )
            self.residents.report("tmem-race", sentence, site, place)
            return
        self._after_writes("written", area, place, site)
        readers = self._read[(slice(None), *area.place)]
        self._own_pending(readers, "written", "loaded", area, place, site)
        self._check("written", "read", readers, place, self._warp(place), site)
        self._written[area.place] = FOREVER << THREAD_BITS | self._warp(place)
        if self._copied:
            self._asked[area.place] = 0

    def stored(self, area: Area, place: int) -> None:
        """The warp has waited for it."""
        self._checked.clear()
        self._written[area.place] = self.clocks.epoch(self._warp(place))

    def _own_pending(
        self, epochs: Array, now: str, before: str, area: Area, place: int, site: Site
    ) -> None:
        """A finding if the warp itself has not waited for its last access."""
        if (epochs == (FOREVER << THREAD_BITS | self._warp(place))).any():
            sentence = (
                f"{self._name(area)} is {now} here, and the warp has not waited for what it "
                f"{before} there."
            )
            self.residents.report("tmem-race", sentence, site, place)

    def _after_writes(self, now: str, area: Area, place: int, site: Site) -> None:
        if self._writing[area.place].any():
            sentence = f"{self._name(area)} is {now} here, and the tensor core has yet to write it."
            self.residents.report("tmem-race", sentence, site, place)
            return
        self._check(now, "wrote", self._wrote(area.place), place, self._warp(place), site)

    # The tensor core

    def issue(self, what: str, written: Area, issuer: Issuer, read: tuple[Area, ...]) -> None:
        """An operation of the tensor core that writes an area, and reads others, is issued."""
        own = self._core(issuer)
        self._writing[written.place] += 1
        for area in read:
            self._reading[area.place] += 1
        key = issuer.place, written, read
        if key in self._checked:
            return
        self._checked = {key, *(other for other in self._checked if other[0] == issuer.place)}
        for now, before, epochs in (
            (f"overwritten by {what}", "wrote", self._wrote(written.place)),
            (f"overwritten by {what}", "read", self._read[(slice(None), *written.place)]),
            *((f"read by {what}", "wrote", self._in_doubt(area, issuer.place)) for area in read),
        ):
            # What the issuer itself has waited for needs no more.
            mine = (epochs & THREAD) == self._warp(issuer.place)
            epochs = np.where(mine & (epochs < FOREVER << THREAD_BITS), 0, epochs)
            self._check(now, before, epochs, issuer.place, own, issuer.site)

    def _wrote(self, place: Place) -> Array:
        """The last writes, or what is known to follow them: the tensor core read what it copied."""
        written = self._written[place]
        if not self._copied:
            return written
        read = self._read[(-1, *place)]
        return np.where((self._asked[place] != 0) & (read > written), read, written)

    def _in_doubt(self, area: Area, place: int) -> Array:
        """The last writes that the tensor core may not have done when it reads for a warp. Copies
        and shifts it has, whoever asked for them, if the warp is ordered after the request."""
        if not self._copied:
            return self._written[area.place]
        asked = self._asked[area.place]
        known = self.clocks.seen[place][(asked & THREAD) >> 5] >= asked >> THREAD_BITS
        return np.where((asked != 0) & known, 0, self._written[area.place])

    def asked(self, issuer: Issuer) -> Array:
        """The epoch of a request of now."""
        return self.clocks.epoch(self._warp(issuer.place))

    def land(
        self, written: Area, issuer: Issuer, read: tuple[Area, ...], asked: Array | int = 0
    ) -> None:
        """It has landed; `asked`: when it was asked for, if it is a copy or a shift."""
        self._writing[written.place] -= 1
        epoch = self.clocks.epoch(self._core(issuer))
        self._written[written.place] = epoch
        if self._copied or asked:
            self._copied = True
            self._asked[written.place] = asked
        for area in read:
            self._read[(-1, *area.place)] = epoch
            self._reading[area.place] -= 1

    def _core(self, issuer: Issuer) -> int:
        return (self.clocks.tensor + issuer.place % SLOTS) << 5

    # Comparing

    def _check(
        self, now: str, before: str, epochs: Array, place: int, own: int, site: Site
    ) -> None:
        """A finding for the first of the earlier accesses that is not ordered before this one."""
        rows = epochs.reshape(len(epochs), -1)
        if (rows == rows[:, :1]).all():  # As they mostly are: one access to all of it.
            epochs = rows[:, 0]
        if not (epochs >> THREAD_BITS).any():
            return
        clocks, thread, time = self.clocks, epochs & THREAD, epochs >> THREAD_BITS
        agent, other = thread >> 5, (thread != own) & (time > 0)
        bad = other & (clocks.seen[place][agent] < time)
        if bad.any():
            who = self._agent(int(agent[bad][0]))
            sentence = (
                f"tensor memory is {now} here, {who} {before} it, and nothing orders the two "
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
