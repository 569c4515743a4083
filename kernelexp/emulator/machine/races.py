"""Races on shared memory: two accesses to a word, one of them a write, that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.spaces import Site
    from kernelexp.emulator.machine.warps import WarpSet


class Races:
    """Holds every access to shared memory against the last ones to the same words."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.clocks = machine.clocks

    def _flat(
        self, warps: WarpSet, offsets: Array, size: int, m: Any
    ) -> tuple[Array, Array, Array]:
        """(units, warp of each, thread of each), of active lanes only."""
        units = self.clocks.units_of(offsets, size)
        warp = np.broadcast_to(warps.warps_column, offsets.shape)
        thread = warps.threads
        if m is not True:
            units, warp, thread = units[m], warp[m], thread[m]
        if units.ndim > warp.ndim:
            warp, thread = warp[..., None], thread[..., None]
        return units, warp, thread

    def read(self, warps: WarpSet, offsets: Array, site: Site, m: Any) -> None:
        clocks = self.clocks
        units, warp, thread = self._flat(warps, offsets, site.size, m)
        writer = clocks.write_thread[units]
        bad = clocks.unordered(warp, thread, clocks.write_time[units], writer)
        if bad.any():
            self._report("read", "wrote", units, bad, warp, writer, site.instruction)
        clocks.read_time[units] = clocks.now
        clocks.read_thread[units] = thread

    def write(self, warps: WarpSet, offsets: Array, values: Array, site: Site, m: Any) -> None:
        clocks = self.clocks
        units, warp, thread = self._flat(warps, offsets, site.size, m)
        if not site.relaxed:
            writer, reader = clocks.write_thread[units], clocks.read_thread[units]
            bad = clocks.unordered(warp, thread, clocks.write_time[units], writer)
            if bad.any() and self._changes(offsets, values, site, m):
                self._report("written", "wrote", units, bad, warp, writer, site.instruction)
            bad = clocks.unordered(warp, thread, clocks.read_time[units], reader)
            if bad.any() and self._changes(offsets, values, site, m):
                self._report("written", "read", units, bad, warp, reader, site.instruction)
        clocks.write_time[units] = clocks.now
        clocks.write_thread[units] = thread

    def _changes(self, offsets: Array, values: Array, site: Site, m: Any) -> bool:
        """Whether the store changes anything: the same value from two warps harms nobody."""
        old = self.machine.shared.gather(offsets, site.element, site.elements)
        different = (old != values).reshape(*offsets.shape, -1).any(axis=-1)
        return bool(different.any() if m is True else different[m].any())

    def _report(
        self,
        now: str,
        before: str,
        units: Array,
        bad: Array,
        warp: Array,
        other: Array,
        ins: Instruction,
    ) -> None:
        index = tuple(axis[0] for axis in np.nonzero(bad))
        place = int(np.broadcast_to(warp, bad.shape)[index])
        address = self.machine.shared_name(int(units[index]) * self.clocks.unit)
        who = self.machine.agent_name(int(other[index]) >> 5)
        if int(other[index]) >> 5 == place:
            who += f", lane {int(other[index]) & 31}"
        self.machine.found(
            "race",
            f"{address} is {now} here and {who} {before} it, with nothing between.",
            ins,
            place,
        )

    # Asynchronous engines

    def engine_read(
        self,
        units: Array | slice,
        issuer: int,
        row: Array,
        fence: Array,
        agent: int,
        ins: Instruction,
    ) -> None:
        """A copy or an MMA reads: its issuer must have seen the writes, through a proxy fence."""
        clocks = self.clocks
        writer, time = clocks.write_thread[units], clocks.write_time[units]
        bad = clocks.unseen(row, issuer, time, writer)
        if bad.any():
            self._report_engine(
                "race",
                "read by the " + self.machine.agent_name(agent),
                "wrote",
                units,
                bad,
                writer,
                ins,
                issuer,
            )
        else:
            bad = clocks.unfenced(fence, time, writer)
            if bad.any():
                self._report_engine(
                    "missing-proxy-fence",
                    "read by the async proxy",
                    "wrote",
                    units,
                    bad,
                    writer,
                    ins,
                    issuer,
                )
        clocks.read_time[units] = clocks.now
        clocks.read_thread[units] = agent << 5

    def engine_write(self, units: Array | slice, issuer: int, row: Array, ins: Instruction) -> None:
        """A copy writes: its issuer must have seen the last reads of what it overwrites."""
        clocks = self.clocks
        reader = clocks.read_thread[units]
        bad = clocks.unseen(row, issuer, clocks.read_time[units], reader)
        if bad.any():
            self._report_engine(
                "overwritten-in-use",
                "overwritten by a copy",
                "read",
                units,
                bad,
                reader,
                ins,
                issuer,
            )
        clocks.write_time[units] = clocks.now
        clocks.write_thread[units] = clocks.copy << 5

    def _report_engine(
        self,
        name: str,
        now: str,
        before: str,
        units: Array | slice,
        bad: Array,
        other: Array,
        ins: Instruction,
        issuer: int,
    ) -> None:
        if isinstance(units, slice):
            units = np.arange(units.start, units.stop)
        index = tuple(axis[0] for axis in np.nonzero(bad))
        address = self.machine.shared_name(int(units[index]) * self.clocks.unit)
        who = self.machine.agent_name(int(other[index]) >> 5)
        tail = (
            "with no fence.proxy.async between"
            if name == "missing-proxy-fence"
            else "and the issuing thread has not waited for that"
        )
        self.machine.found(
            name, f"{address} is {now}; {who} {before} it, {tail}.", ins, issuer >> 5
        )

    # ldmatrix and stmatrix: the addresses are 8 lanes', the accesses the whole warp's

    def matrix_read(self, warps: WarpSet, offsets: Array, ins: Instruction) -> None:
        clocks = self.clocks
        units = clocks.units_of(offsets, 16)
        warp = np.broadcast_to(warps.warps[:, None, None], units.shape)
        writer = clocks.write_thread[units]
        bad = clocks.unordered(warp, np.full(1, -1), clocks.write_time[units], writer)
        if bad.any():
            self._report("read", "wrote", units, bad, warp, writer, ins)
        clocks.read_time[units] = clocks.now
        clocks.read_thread[units] = warp * 32

    def matrix_write(self, warps: WarpSet, offsets: Array, ins: Instruction) -> None:
        clocks = self.clocks
        units = clocks.units_of(offsets, 16)
        warp = np.broadcast_to(warps.warps[:, None, None], units.shape)
        for before, time, thread in (
            ("wrote", clocks.write_time, clocks.write_thread),
            ("read", clocks.read_time, clocks.read_thread),
        ):
            bad = clocks.unordered(warp, np.full(1, -1), time[units], thread[units])
            if bad.any():
                self._report("written", before, units, bad, warp, thread[units], ins)
        clocks.write_time[units] = clocks.now
        clocks.write_thread[units] = warp * 32
