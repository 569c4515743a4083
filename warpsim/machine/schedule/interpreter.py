"""Executes instructions that have a compiled form: straight on, until one is left to Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np

from warpsim import compiled
from warpsim.machine.core.native_layout import COSTS, MachineLayout, RacesLayout
from warpsim.machine.counts.access import AccessCost
from warpsim.machine.schedule.batches import Batch
from warpsim.machine.schedule.program import CompiledBlock, DecodedProgram
from warpsim.machine.wave.machine import Machine, WarpSet

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_ARGUMENTS = (*[_POINTER] * 3, _INT, ctypes.py_object, _INT, ctypes.c_int64, _INT)

_RACED = ("read", "wrote"), ("written", "wrote"), ("written", "read")
"""In the order of kx::Raced."""


class Interpreter:
    """Compiled code at work on the machine of one wave."""

    def __init__(self, machine: Machine, program: DecodedProgram) -> None:
        self._machine = machine
        self._guarded = np.zeros((len(program.sites), 3), np.int64)
        self._costs = np.zeros((len(program.sites), 1 + COSTS), np.int64)
        self._lanes = np.empty((machine.execution.warps, 32), np.uint8)
        self._memories = [
            machine.shared_space.fast,
            machine.global_space.fast,
            machine.local_space.compiled,
        ]
        self._results = np.empty((machine.execution.warps, 32), np.uint32)
        self._races = RacesLayout()
        arrays = self._guarded, self._costs, self._lanes, self._results
        self._layout = MachineLayout(
            machine.registers.layout.ctypes.data,
            (ctypes.c_void_p * 3)(*(memory.address() for memory in self._memories if memory)),
            *(array.ctypes.data for array in arrays),
            *(machine.undefined.marks.address, ctypes.addressof(self._races)),
        )
        self._address = ctypes.addressof(self._layout)
        self._execute = compiled.function("kx_execute", *_ARGUMENTS)

    def run(self, code: CompiledBlock, at: int, batch: Batch) -> int:
        """Executes the instructions of a block from one on; the first that Python has to execute,
        or their number."""
        machine, mask = self._machine, batch.mask
        if machine.undefined.marks.room:
            code.follow()
        count: int = self._execute(
            *(self._address, batch.set.address, code.address, at),
            *(mask, mask is not True, machine.clocks.now),
            self._withheld(code, batch.set) if code.memories else 0,
        )
        if self._races.count:
            self._report_races()
        return count

    def _report_races(self) -> None:
        """Reports the accesses that compiled code has done although they race."""
        machine, noted = self._machine, self._races
        for race in noted.first[: noted.count]:
            races = machine.world_races if race.memory else machine.races
            site = machine.undefined.sites[race.site]
            races.report(*_RACED[race.raced], race.unit, race.thread, race.epoch, site)
        noted.count = 0

    def _withheld(self, code: CompiledBlock, warps: WarpSet) -> int:
        """Accesses that Python has to look at: loads of shared, global, local memory, then stores,
        a bit each."""
        bits = 0
        for index in code.memories:
            memory = self._memories[index]
            assert memory is not None
            memory.prepare(warps)
            memory.address()
            load, store = memory.withheld()
            bits |= load << index | store << (3 + index)
        return bits

    def guarded(self) -> Iterator[tuple[int, int, int]]:
        """(number, warps with an active lane, active lanes) of guarded instructions."""
        for number in np.flatnonzero(self._guarded[:, 0]).tolist():
            _, warps, lanes = self._guarded[number].tolist()
            yield number, warps, lanes

    def add_costs(self) -> None:
        """Adds what accesses have cost to the tallies of the launch."""
        for number in np.flatnonzero(self._costs[:, 0]).tolist():
            accesses, *cost = self._costs[number].tolist()
            self._machine.execution.tally(number).add(AccessCost(*cost), accesses)
