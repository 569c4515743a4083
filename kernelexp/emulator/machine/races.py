"""Races on shared memory: two accesses to a word, one of them a write, that nothing orders."""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.access import Access
from kernelexp.emulator.machine.arena import Arena
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.asynchronous import Issuer
from kernelexp.emulator.machine.clocks import Clocks
from kernelexp.emulator.machine.residents import Residents
from kernelexp.emulator.machine.site import Site
from kernelexp.emulator.machine.warps import Warps

_UNORDERED = "and the issuing thread did not wait for it"
_ENGINES = {
    "race": ("read by {}", "wrote", _UNORDERED),
    "missing-proxy-fence": (
        "read by the async proxy",
        "wrote",
        "with no fence.proxy.async in between",
    ),
    "overwritten-in-use": ("overwritten by a copy", "read", _UNORDERED),
}


class Races:
    """Compares every access to shared memory with the last ones to the same words."""

    def __init__(self, residents: Residents, clocks: Clocks, shared: Arena) -> None:
        self.residents = residents
        self.clocks = clocks
        self.shared = shared

    def _flat(self, warps: Warps, offsets: Array, size: int, m: Mask) -> tuple[Array, Array, Array]:
        """(units, warp of each, thread of each), of active lanes only."""
        units = self.clocks.units_of(offsets, size)
        warp = np.broadcast_to(warps.warps_column, offsets.shape)
        thread = warps.threads
        if m is not True:
            units, warp, thread = units[m], warp[m], thread[m]
        if units.ndim > warp.ndim:
            warp, thread = warp[..., None], thread[..., None]
        return units, warp, thread

    def read(self, warps: Warps, offsets: Array, access: Access, m: Mask) -> None:
        clocks = self.clocks
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        writer = clocks.write_thread[units]
        bad = clocks.unordered(warp, thread, clocks.write_time[units], writer)
        if bad.any():
            self._report("read", "wrote", units, bad, warp, writer, access.site)
        clocks.read_time[units] = clocks.now
        clocks.read_thread[units] = thread

    def write(self, warps: Warps, offsets: Array, values: Array, access: Access, m: Mask) -> None:
        clocks = self.clocks
        units, warp, thread = self._flat(warps, offsets, access.size, m)
        if not access.relaxed:
            writer, reader = clocks.write_thread[units], clocks.read_thread[units]
            bad = clocks.unordered(warp, thread, clocks.write_time[units], writer)
            if bad.any() and self._changes(offsets, values, access, m):
                self._report("written", "wrote", units, bad, warp, writer, access.site)
            bad = clocks.unordered(warp, thread, clocks.read_time[units], reader)
            if bad.any() and self._changes(offsets, values, access, m):
                self._report("written", "read", units, bad, warp, reader, access.site)
        clocks.write_time[units] = clocks.now
        clocks.write_thread[units] = thread

    def _changes(self, offsets: Array, values: Array, access: Access, m: Mask) -> bool:
        """Whether the store changes anything: the same value from two warps harms nobody."""
        old = self.shared.gather(offsets, access.element, access.elements)
        different = (old != values).reshape(*offsets.shape, -1).any(axis=-1)
        return bool(different.any() if m is True else different[m].any())

    def _report(
        self, now: str, before: str, units: Array, bad: Array, warp: Array, other: Array, site: Site
    ) -> None:
        index = tuple(axis[0] for axis in np.nonzero(bad))
        place = int(np.broadcast_to(warp, bad.shape)[index])
        address = self.residents.shared_name(int(units[index]) * self.clocks.unit)
        who = self._agent(int(other[index]) >> 5)
        if int(other[index]) >> 5 == place:
            who += f", lane {int(other[index]) & 31}"
        self.residents.report(
            "race",
            f"{address} is {now} here, {who} {before} it, and nothing orders the two accesses.",
            site,
            place,
        )

    def _agent(self, agent: int) -> str:
        if agent in (self.clocks.copy, self.clocks.store):
            return "the copy engine"
        return "the tensor core" if agent == self.clocks.tensor else self.residents.warp_name(agent)

    # Asynchronous engines

    def engine_read(self, units: Array | slice, issuer: Issuer, agent: int) -> None:
        """A copy or an MMA reads: its issuer must have seen the writes, through a proxy fence."""
        clocks = self.clocks
        writer, time = clocks.write_thread[units], clocks.write_time[units]
        bad = clocks.unseen(issuer.seen, issuer.thread, time, writer)
        if bad.any():
            self._report_engine("race", units, bad, writer, issuer, agent)
        else:
            bad = clocks.unfenced(issuer.fence, time, writer)
            if bad.any():
                self._report_engine("missing-proxy-fence", units, bad, writer, issuer, agent)
        clocks.read_time[units] = clocks.now
        clocks.read_thread[units] = agent << 5

    def engine_write(self, units: Array | slice, issuer: Issuer) -> None:
        """A copy writes: its issuer must have seen the last reads of what it overwrites."""
        clocks = self.clocks
        reader = clocks.read_thread[units]
        bad = clocks.unseen(issuer.seen, issuer.thread, clocks.read_time[units], reader)
        if bad.any():
            self._report_engine("overwritten-in-use", units, bad, reader, issuer, clocks.copy)
        clocks.write_time[units] = clocks.now
        clocks.write_thread[units] = clocks.copy << 5

    def _report_engine(
        self, name: str, units: Array | slice, bad: Array, other: Array, issuer: Issuer, agent: int
    ) -> None:
        now, before, tail = _ENGINES[name]
        if isinstance(units, slice):
            units = np.arange(units.start, units.stop)
        index = tuple(axis[0] for axis in np.nonzero(bad))
        address = self.residents.shared_name(int(units[index]) * self.clocks.unit)
        who = self._agent(int(other[index]) >> 5)
        self.residents.report(
            name,
            f"{address} is {now.format(self._agent(agent))}; {who} {before} it, {tail}.",
            issuer.site,
            issuer.place,
        )

    # ldmatrix and stmatrix: the addresses are 8 lanes', the accesses the whole warp's

    def matrix_read(self, warps: Warps, offsets: Array, site: Site) -> None:
        clocks = self.clocks
        units = clocks.units_of(offsets, 16)
        warp = np.broadcast_to(warps.warps[:, None, None], units.shape)
        writer = clocks.write_thread[units]
        bad = clocks.unordered(warp, np.full(1, -1), clocks.write_time[units], writer)
        if bad.any():
            self._report("read", "wrote", units, bad, warp, writer, site)
        clocks.read_time[units] = clocks.now
        clocks.read_thread[units] = warp * 32

    def matrix_write(self, warps: Warps, offsets: Array, site: Site) -> None:
        clocks = self.clocks
        units = clocks.units_of(offsets, 16)
        warp = np.broadcast_to(warps.warps[:, None, None], units.shape)
        for before, time, thread in (
            ("wrote", clocks.write_time, clocks.write_thread),
            ("read", clocks.read_time, clocks.read_thread),
        ):
            bad = clocks.unordered(warp, np.full(1, -1), time[units], thread[units])
            if bad.any():
                self._report("written", before, units, bad, warp, thread[units], site)
        clocks.write_time[units] = clocks.now
        clocks.write_thread[units] = warp * 32
