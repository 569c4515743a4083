"""Races: two accesses to a word, one of them a write, that nothing orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.machine.checks.race_reports import Conflict, RaceReports, first_of
from warpsim.machine.checks.repeats import Repeats
from warpsim.machine.checks.torn import TornLoads
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.clocks import SITE, SLOTS, THREAD, THREAD_BITS, TIME, Clocks
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import Warps
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.arena import Arena
from warpsim.machine.memory.history import History
from warpsim.machine.memory.residents import Residents

_ELEMENT_LANES = np.arange(32).reshape(8, 4).repeat(2, axis=1)
"""The lane that holds each element of 2 bytes of the 8 rows of a matrix."""


class Races:
    """Compares every access to a memory with the last ones to the same words."""

    checks = True

    def __init__(
        self,
        residents: Residents,
        clocks: Clocks,
        arena: Arena,
        history: History,
        space: str,
        name_of: Callable[[int, int], str],
        object_of: Callable[[int], str],
    ) -> None:
        self.residents = residents
        self.clocks = clocks
        self.arena = arena
        self.history = history
        self.space = space
        """Whose proxy fences count: "shared" or "global"."""
        self.reports = RaceReports(residents, clocks, name_of, object_of)
        self._column = np.arange(residents.warps_per_cta).repeat(residents.resident)
        """By place."""
        self._column %= history.columns
        self.repeats = Repeats(len(history.written))
        self.observed = Repeats(len(history.written))
        """Volatile and relaxed loads that have read the last such store to their word. What comes
        after the load comes after that store, too, though after nothing else that its thread did:
        PTX's causality order begins with an observation (memory consistency model, "Observation
        Order" and "Causality Order")."""
        self._torn = TornLoads()
        self._narrow: set[int] = set()
        """Numbers of instructions whose relaxed accesses are of the scope of a CTA."""
        self._columns: dict[int, Array] = {}
        """Of the readers in each set of warps, by its identity: sets live as the machine does."""

    def _flat(self, warps: Warps, offsets: Array, size: int, m: Mask) -> tuple[Array, Array, Array]:
        """(units, warp of each, thread of each), of active lanes only."""
        units = self.history.units_of(offsets, size)
        warp, thread = warps.of_lanes, warps.threads
        if m is not True:
            units, warp, thread = units[m], warp[m], thread[m]
        if units.ndim > warp.ndim:
            warp, thread = warp[..., None], thread[..., None]
        return units, warp, thread

    def columns(self, warps: Warps) -> Array:
        """Of the history, where the reads of each warp of a set are kept, [n]."""
        columns = self._columns.get(id(warps))
        if columns is None:
            columns = self._columns[id(warps)] = self._column[warps.warps]
            self.history.use(columns.tolist())
        return columns

    def _note_read(
        self, warps: Warps, units: Array, warp: Array, thread: Array, site: Site
    ) -> None:
        epochs, columns = self.clocks.epoch(thread, site.number), self.columns(warps)
        one = len(columns) == 1
        column = columns[0] if one else np.broadcast_to(self._column[warp], units.shape)
        self.history.note_read(column, units, epochs, self.clocks.seen, warp)

    def _note_poll(self, units: Array, thread: Array, site: Site) -> None:
        self.history.use([self.history.polls])
        self.history.read[self.history.polls][units] = self.clocks.epoch(thread, site.number)

    def _note_write(self, units: Array, thread: Array, site: Site) -> None:
        self.history.note(units, self.clocks.epoch(thread, site.number))

    def read(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        writer = self.history.writers(units)
        bad = self.clocks.unordered(warp, thread, writer)
        bad = self._unmet(bad, units, warp, thread, writer)
        if bad.any():
            self._report("read", "wrote", units, bad, thread, writer, access.site)
        elif self.is_formal:
            self._acquired(units, warp, thread, writer, access.site)
        if access.polls:
            self._note_poll(units, thread, access.site)
        else:
            self._note_read(warps, units, warp, thread, access.site)

    def _unmet(self, bad: Array, units: Array, warp: Array, thread: Array, writer: Array) -> Array:
        """Of accesses that the last writes are not ordered before, those that nothing stands for
        that is: a store of the same value, or a load that has seen the write."""
        for others in (self.repeats, self.observed):
            if others and bad.any():
                bad = bad & ~others.seen(self.clocks, units, warp, thread, writer)
        return bad

    @property
    def looks_at_stores(self) -> bool:
        """Whether the first lane of a store that races does not stand for the others."""
        return bool(self.repeats or self.residents.execution.benign)

    @property
    def looks_at_races(self) -> bool:
        """Whether accesses that nothing orders may be none."""
        return bool(self.observed) or self.looks_at_stores

    @property
    def is_formal(self) -> bool:
        """Whether an order that was seen may not be one that was acquired."""
        return self.clocks.unsure if self.space == "global" else self.clocks.narrow

    def _acquired(
        self, units: Array, warp: Array, thread: Array, writer: Array, site: Site
    ) -> None:
        """A warning for reads of what a flag has announced that nobody acquired."""
        bad = self.clocks.not_acquired(warp, thread, writer)
        bad = self._unmet(bad, units, warp, thread, writer)
        if bad.any():
            unit, place = first_of(bad, units, warp)
            self.reports.missing_acquire(unit * self.history.unit, place, site)

    def write(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        if access.relaxed:
            self._relaxed(units, warp, thread, access)
            return
        written = self.history.writers(units)
        unordered = self.clocks.unordered(warp, thread, written)
        if self.observed and unordered.any():
            seen = self.observed.seen(self.clocks, units, warp, thread, written)
            unordered = unordered & ~seen
        readers = self.history.readers(units)
        conflicts = [
            (before, epochs, bad)
            for before, epochs, bad in (
                ("wrote", written, unordered),
                ("read", readers, self.clocks.unordered(warp, thread, readers)),
            )
            if bad.any()
        ]
        if conflicts or self.repeats:
            changed = self._changed(offsets, values, access, m)
            changed = changed[..., None] if units.ndim > changed.ndim else changed
            for before, epochs, bad in conflicts:
                if (bad & changed).any():
                    bad = bad & changed
                    self._report("written", before, units, bad, thread, epochs, access.site)
            units, thread = self._repeat(units, warp, thread, written, changed, access.site)
        self._note_write(units, thread, access.site)
        self._disagree(warps, offsets, values, access, m)

    def _disagree(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        """A race of lanes that store different values to one word by one instruction; the same
        value of several warps is a repeat."""
        units, _, thread = self._flat(warps, offsets, access.size, m)
        units = units.reshape(thread.size, -1)
        thread = np.broadcast_to(thread.reshape(-1, 1), units.shape)
        epochs = self.history.written[units]
        if ((epochs & THREAD) == thread).all():
            return
        given = np.ascontiguousarray(values if m is True else values[m])
        parts = given.view(np.uint8).reshape(*units.shape, -1)
        _, same = np.unique(units, return_inverse=True)
        same = same.reshape(units.shape)
        last = np.zeros((int(same.max()) + 1, parts.shape[2]), np.uint8)
        last[same] = parts
        bad = (last[same] != parts).any(axis=-1) & ((epochs & THREAD) != thread)
        if bad.any():
            self._report("written", "wrote", units, bad, thread, epochs, access.site)
        again = ~bad & ((epochs & THREAD) >> 5 != thread >> 5)
        self._note_repeats(units[again], thread[again], access.site)

    def _repeat(
        self, units: Array, warp: Array, thread: Array, written: Array, changed: Array, site: Site
    ) -> tuple[Array, Array]:
        """Notes the stores of values that are there already; (units, threads) of all others."""
        changed, warp, thread = (np.broadcast_to(x, units.shape) for x in (changed, warp, thread))
        again = self.clocks.unordered(warp, thread, written) & ~changed
        again = np.broadcast_to(again, units.shape)
        self._note_repeats(units[again], thread[again], site)
        late = self.repeats.unordered(self.clocks, units, warp, thread, written) & changed
        if late.any():
            epochs = np.broadcast_to(written, units.shape)
            self._report("written", "wrote", units, late, thread, epochs, site)
        return units[~again], thread[~again]

    def _note_repeats(self, units: Array, thread: Array, site: Site) -> None:
        """These threads have stored what is there already."""
        epochs = self.clocks.epoch(thread, site.number)
        self.repeats.note_all(units, self.history.writers(units), epochs)

    def observe(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """A volatile or relaxed load: it may meet stores of its kind, but no ordinary one."""
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        bad = self._contend(units, warp, thread)
        if bad.any():
            self._meets_ordinary("read", units, bad, thread, access.site)
            torn = self._torn.of(self.history, units, bad, access)
            if torn.any():
                epochs = self.history.writers(units)
                self._report("read", "wrote", units, torn, thread, epochs, access.site)
        if not self._meets_narrow("read", units, bad, thread, access) and bad.any():
            self._note_observed(units, bad, thread, access.site)
        self._note_poll(units, thread, access.site)

    def _note_observed(self, units: Array, bad: Array, thread: Array, site: Site) -> None:
        """These threads have read what a volatile or relaxed access has just written."""
        written = self.history.written[units]
        bad = bad & (written == self.history.relaxed[units])
        units, thread, written = (
            np.broadcast_to(x, bad.shape)[bad] for x in (units, thread, written)
        )
        self.observed.note_all(units, written, self.clocks.epoch(thread, site.number))

    def _contend(self, units: Array, warp: Array, thread: Array) -> Array:
        """What relaxed accesses meet: the writes that nothing orders before them."""
        bad = self.clocks.unordered(warp, thread, self.history.writers(units))
        if bad.any():
            self.residents.execution.contended = True
        return bad

    def _relaxed(self, units: Array, warp: Array, thread: Array, access: AccessKind) -> None:
        """A volatile or relaxed store, or an atomic: it may meet others of its kind, and loads that
        poll it, but no ordinary access."""
        history, bad, site = self.history, self._contend(units, warp, thread), access.site
        self._torn.stored(access)
        if bad.any():
            self._meets_ordinary("written", units, bad, thread, site)
        self._meets_narrow("written", units, bad, thread, access)
        if access.narrow:
            self._meets_beside(units, thread, access)
        readers = history.readers(units, ordinary=True)
        bad = self.clocks.unordered(warp, thread, readers)
        if bad.any():
            self._report("written", "read", units, bad, thread, readers, site)
        self._note_write(units, thread, site)
        history.relaxed[units] = history.written[units]

    def _meets_ordinary(
        self, now: str, units: Array, bad: Array, thread: Array, site: Site
    ) -> None:
        """A finding where one of the last writes, `bad` ones, was an ordinary store."""
        written = self.history.written[units]
        bad = bad & (written != self.history.relaxed[units])
        if bad.any():
            self._report(now, "wrote", units, bad, thread, self.history.known(written), site)

    def _meets_narrow(
        self, now: str, units: Array, bad: Array, thread: Array, access: AccessKind
    ) -> bool:
        """A finding, and True, where `bad` writes are another CTA's, and this access or they are of
        the scope of a CTA."""
        if access.narrow:
            self._narrow.add(access.site.number)
        if not self._narrow or not bad.any():
            return False
        epochs = self.history.writers(units)
        others = (epochs & THREAD) >> 5
        among = others < self.clocks.warps
        same = among & (others % self.residents.resident == (thread >> 5) % self.residents.resident)
        bad = bad & (among | (others == self.clocks.earlier)) & ~same
        if not access.narrow:
            bad = bad & np.isin((epochs >> THREAD_BITS & SITE) - 1, list(self._narrow))
        if bad.any():
            self._report(now, "wrote", units, bad, thread, epochs, access.site)
        return bool(bad.any())

    def _meets_beside(self, units: Array, thread: Array, access: AccessKind) -> None:
        """A finding where lanes of several CTAs, executed together, update a word in the scope of a
        CTA."""
        thread = np.broadcast_to(thread, units.shape).ravel()
        ctas = (thread >> 5) % self.residents.resident
        if (ctas == ctas[0]).all():
            return
        units = units.ravel()
        order = np.argsort(units, kind="stable")
        units, thread, ctas = units[order], thread[order], ctas[order]
        bad = (units[1:] == units[:-1]) & (ctas[1:] != ctas[:-1])
        if bad.any():
            before = self.clocks.epoch(thread[:-1], access.site.number)
            self._report("written", "wrote", units[1:], bad, thread[1:], before, access.site)

    def _changed(self, offsets: Array, values: Array, access: AccessKind, m: Mask) -> Array:
        """Which active lanes change anything: the same value from two warps harms nobody."""
        old = self.arena.gather(offsets, access.element, access.elements)
        different: Array = (old != values).reshape(*offsets.shape, -1).any(axis=-1)
        return different if m is True else different[m]

    def _report(
        self,
        now: str,
        before: str,
        units: Array,
        bad: Array,
        thread: Array,
        epochs: Array,
        site: Site,
    ) -> None:
        benign = self.residents.execution.benign
        if site.number in benign:
            harmful = bad & ~np.isin((epochs >> THREAD_BITS & SITE) - 1, list(benign))
            bad = harmful if harmful.any() else bad
        unit, who, epoch = first_of(bad, units, thread, epochs)
        self.report(now, before, unit, who, epoch, site)

    def report(self, now: str, before: str, unit: int, thread: int, epoch: int, site: Site) -> None:
        """A race of an access by a thread with the one to that unit at an epoch."""
        benign = self.residents.execution.benign
        is_benign = site.number in benign and (epoch >> THREAD_BITS & SITE) - 1 in benign
        kind = "benign-race" if is_benign else "race"
        self.reports.race(kind, now, before, unit * self.history.unit, thread, epoch, site)

    # Asynchronous engines

    def engine_read(self, units: Array | slice, issuer: Issuer, agent: int) -> None:
        """A copy or an MMA reads: its issuer must have seen the writes, through a proxy fence."""
        clocks, history = self.clocks, self.history
        units, epoch = _listed(units), clocks.epoch(agent << 5, issuer.site.number)
        history.use([history.engines])
        writer = history.writers(units)
        bad = clocks.unseen(issuer.seen, issuer.thread, writer)
        if bad.any():
            self._report_engine("race", units, bad, writer, issuer, agent)
        else:
            fenced = issuer.fences[self.space]
            bad = clocks.unfenced(self.space, issuer.seen, fenced, issuer.thread, writer)
            if bad.any():
                self._report_engine("missing-proxy-fence", units, bad, writer, issuer, agent)
        history.note_read(history.engines, units, epoch, issuer.seen[None], 0)

    def engine_write(self, units: Array | slice, issuer: Issuer, agent: int) -> None:
        """A copy writes: its issuer must have seen the last uses of what it overwrites."""
        clocks, history, units = self.clocks, self.history, _listed(units)
        for epochs in (history.writers(units), history.readers(units)):
            bad = clocks.unseen(issuer.seen, issuer.thread, epochs)
            if bad.any():
                self._report_engine("overwritten-in-use", units, bad, epochs, issuer, agent)
        self._note_write(units, np.array(agent << 5), issuer.site)

    def engine_reduction(self, units: Array | slice, issuer: Issuer, agent: int) -> None:
        """A copy reduces into shared memory, as others may at the same time."""
        self.residents.execution.contended = True
        self._note_reduction(_listed(units), issuer, agent)

    def engine_output(self, units: Array, issuer: Issuer, *, reduces: bool) -> None:
        """A bulk store writes to global memory; reductions of several threads may meet."""
        agent = self.output_agent(issuer)
        if reduces:
            self.residents.execution.contended = True
            self._note_reduction(units, issuer, agent)
        else:
            self.engine_write(units, issuer, agent)

    def _note_reduction(self, units: Array, issuer: Issuer, agent: int) -> None:
        self._note_write(units, np.array(agent << 5), issuer.site)
        self.history.relaxed[units] = self.history.written[units]

    def output_agent(self, issuer: Issuer) -> int:
        """As which a bulk store of a thread writes."""
        return self.clocks.output + issuer.place % SLOTS

    def uses(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> list[Conflict]:
        """What nothing orders before a copy by threads that begins now, of what it will change."""
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        written, readers = self.history.writers(units), self.history.readers(units)
        late = self.clocks.unordered(warp, thread, written)
        late = self._unmet(late, units, warp, thread, written)
        return [
            Conflict(before, units, thread, epochs, bad)
            for before, epochs, bad in (
                ("wrote", written, late),
                ("read", readers, self.clocks.unordered(warp, thread, readers)),
            )
            if bad.any()
        ]

    def source(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """A copy by threads begins, which reads from now on."""
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        writer = self.history.writers(units)
        bad = self.clocks.unordered(warp, thread, writer)
        bad = self._unmet(bad, units, warp, thread, writer)
        if bad.any():
            self._report("read", "wrote", units, bad, thread, writer, access.site)

    def meanwhile(
        self,
        warps: Warps,
        offsets: Array,
        values: Array,
        access: AccessKind,
        m: Mask,
        begun: int,
        uses: list[Conflict],
    ) -> None:
        """A copy by threads lands: nobody may have used what it changes since it was begun, for
        which the first word of each lane's piece stands; `uses`: nor before that, unordered."""
        changed = self._changed(offsets, values, access, m)
        if not changed.any():
            return
        for before, units, thread, epochs, bad in uses:
            bad = bad & (changed[..., None] if units.ndim > changed.ndim else changed)
            if bad.any():
                self._report("written", before, units, bad, thread, epochs, access.site)
        units, _, thread = self._flat(warps, offsets, self.history.unit, m)
        for before, epochs in (
            ("wrote", self.history.writers(units)),
            ("read", self.history.readers(units)),
        ):
            since = (epochs >> TIME >= begun) & (epochs & THREAD < self.clocks.warps << 5)
            bad = since & changed.reshape(units.shape)
            if bad.any():
                self._report("written", before, units, bad, thread, epochs, access.site)

    def stale(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """A load through the non-coherent cache: nothing may have been written in this launch."""
        units, warp, _ = self._flat(warps, offsets, access.size, m)
        written = self.history.written[units]
        bad = (written != 0) & (written != self.history.beside)
        if bad.any():
            unit, place = first_of(bad, units, warp)
            self.reports.stale(unit * self.history.unit, place, access.site)

    def _report_engine(
        self, name: str, units: Array, bad: Array, epochs: Array, issuer: Issuer, agent: int
    ) -> None:
        unit, epoch = first_of(bad, units, epochs)
        self.reports.engine(name, unit * self.history.unit, epoch, issuer, agent)

    # ldmatrix and stmatrix: the addresses are 8 lanes', the accesses the whole warp's

    def _matrix(self, warps: Warps, offsets: Array, transposed: bool) -> tuple[Array, Array, Array]:
        """(units, warp of each, thread of each) of rows of 16 bytes, [n, rows]; a unit that two
        lanes hold is the second one's."""
        units = self.history.units_of(offsets, 16)
        warp = np.broadcast_to(warps.warps[:, None, None], units.shape)
        held = _ELEMENT_LANES.T if transposed else _ELEMENT_LANES
        last = np.arange(1, units.shape[2] + 1) * 16 // units.shape[2] - 1
        lanes = np.tile(held[:, last // 2], (units.shape[1] // 8, 1))
        return units, warp, warp * 32 + lanes

    def matrix_read(self, warps: Warps, offsets: Array, site: Site, *, transposed: bool) -> None:
        units, warp, thread = self._matrix(warps, offsets, transposed)
        writer = self.history.writers(units)
        # Every lane's part goes through other lanes: its own stores are others' to it.
        bad = self.clocks.unordered(warp, np.full(1, -1), writer)
        if bad.any():
            bad = _between_two(bad, thread, writer)
            self._report("read", "wrote", units, bad, thread, writer, site)
        self._note_read(warps, units, warp, thread, site)

    def matrix_write(self, warps: Warps, offsets: Array, site: Site, *, transposed: bool) -> None:
        units, warp, thread = self._matrix(warps, offsets, transposed)
        for before, epochs in (
            ("wrote", self.history.writers(units)),
            ("read", self.history.readers(units)),
        ):
            bad = self.clocks.unordered(warp, np.full(1, -1), epochs)
            if bad.any():
                bad = _between_two(bad, thread, epochs)
                self._report("written", before, units, bad, thread, epochs, site)
        self._note_write(units, thread, site)


def _between_two(bad: Array, thread: Array, epochs: Array) -> Array:
    """Those of two threads, if there are any: one beside itself makes no sense to people."""
    others: Array = bad & ((epochs & THREAD) != thread)
    return others if others.any() else bad


def _listed(units: Array | slice) -> Array:
    """Units as int64 [n]."""
    if isinstance(units, slice):
        return np.arange(units.start, units.stop)
    return np.ascontiguousarray(units, np.int64)
