"""Executes instructions that have a compiled form, block after block, and those between them."""

from __future__ import annotations

import ctypes
from typing import TypeAlias

import numpy as np

from warpsim import compiled
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.native_layout import COSTS, ENTER, MachineLayout, RacesLayout, TurnLayout
from warpsim.machine.counts.access import AccessCost
from warpsim.machine.schedule.batches import Batch
from warpsim.machine.schedule.program import QUANTUM, DecodedProgram
from warpsim.machine.schedule.synchronisation import Synchronisation
from warpsim.machine.wave.machine import Machine, WarpSet

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_ARGUMENTS = (*[_POINTER] * 4, ctypes.py_object, _INT, _INT)

_RACED = ("read", "wrote"), ("written", "wrote"), ("written", "read")
"""In the order of kx::Raced."""


Place: TypeAlias = tuple[int, int, int, bool]
"""Where warps have come to: a block, what they have used up of their turn, and in how many polls;
whether all of the block but its branch has been executed, otherwise it is to be entered."""


class Interpreter:
    """Compiled code at work on the machine of one wave."""

    def __init__(
        self, machine: Machine, program: DecodedProgram, entered: Array, goes_on: bool
    ) -> None:
        """entered: what is counted of blocks, int64 [sites, ENTERED]; goes_on: whether it may
        execute more than one block at once."""
        self._machine = machine
        self._program = program
        self._guarded = np.zeros((len(program.sites), 3), np.int64)
        self._costs = np.zeros((len(program.sites), 1 + COSTS), np.int64)
        self._lanes = np.empty((machine.execution.warps, 32), np.uint8)
        memories = [
            machine.shared_space.fast,
            machine.global_space.fast,
            machine.local_space.compiled,
        ]
        self._memories = [(i, m) for i, m in enumerate(memories) if m and i in program.memories]
        self._benign = bool(machine.execution.benign)
        self._prepared: set[WarpSet] = set()
        """Sets that may access these."""
        self._results = np.empty((machine.execution.warps, 32), np.uint32)
        self._races = RacesLayout()
        self._turn = TurnLayout(quantum=QUANTUM if goes_on else 0)
        self._sync = Synchronisation(machine) if goes_on else None
        arrays = entered, self._guarded, self._costs, self._lanes, self._results
        self._layout = MachineLayout(
            machine.registers.layout.ctypes.data,
            (ctypes.c_void_p * 3)(*(memory.address for memory in memories if memory)),
            *(array.ctypes.data for array in arrays),
            *(machine.undefined.marks.address, ctypes.addressof(self._races)),
            self._sync and self._sync.address,
        )
        self._addresses = program.table.ctypes.data, ctypes.addressof(self._turn)
        self._address = ctypes.addressof(self._layout)
        self._run = compiled.function("kx_run", *_ARGUMENTS)

    def run(self, batch: Batch, pc: int, turn: int, polls: int) -> Place:
        """Executes a block, and those that follow up to one that Python has to enter, or at whose
        end it has to decide where lanes go."""
        machine, at, warps, mask = self._machine, self._turn, batch.set, batch.mask
        execution, undefined, program = machine.execution, machine.undefined, self._program
        at.block, at.at, at.turn, at.polls = pc, ENTER, turn, polls
        at.lanes, at.meets = batch.lanes, batch.meets
        if warps not in self._prepared:
            self._prepare(warps)
        code, sync = program.code(pc), self._sync
        while True:
            if undefined.marks.room:
                code.follow()
            if sync is not None:
                sync.prepare()
            at.now = machine.clocks.now
            inside = self._run(
                *(self._address, warps.address, *self._addresses, mask, mask is not True),
                self._withheld(),
            )
            machine.clocks.now = at.now
            if sync is not None:
                sync.take_up(batch.fragments)
            if self._races.count:
                self._report_races()
            execution.steps += at.steps
            at.steps = 0
            pc, index = at.block, at.at
            if not inside:
                return pc, at.turn, at.polls, False
            block, code = program.blocks[pc], program.code(pc)
            is_compiled = code.compiled
            if index == len(is_compiled):
                return pc, at.turn, at.polls, True
            while True:
                if undefined.live:
                    undefined.before(block.numbers[index], warps.R, warps, mask)
                block.ops[index](warps.R, mask, warps)
                index += 1
                if index == len(is_compiled) or is_compiled[index]:
                    break
            at.at = index

    def _prepare(self, warps: WarpSet) -> None:
        """Lets a set of warps access the memories."""
        self._prepared.add(warps)
        for _, memory in self._memories:
            memory.prepare(warps)

    def _report_races(self) -> None:
        """Reports the accesses that compiled code has done although they race."""
        machine, noted = self._machine, self._races
        for race in noted.first[: noted.count]:
            races = machine.world_races if race.memory else machine.races
            site = machine.undefined.sites[race.site]
            races.report(*_RACED[race.raced], race.unit, race.thread, race.epoch, site)
        noted.count = 0

    def _withheld(self) -> int:
        """Accesses that Python has to look at: loads of shared, global, local memory, then stores,
        then those that race, a bit each."""
        bits, clocks = 0, self._machine.clocks
        doubtful = clocks.partial is not None or clocks.unsure or clocks.narrow or self._benign
        for index, memory in self._memories:
            if doubtful or not memory.is_plain():
                bits |= memory.withheld() << index
        return bits

    def guarded(self) -> Array:
        """Of guarded instructions: executions, warps with an active lane, active lanes."""
        return self._guarded

    def add_costs(self) -> None:
        """Adds what accesses have cost to the tallies of the launch."""
        for number in np.flatnonzero(self._costs[:, 0]).tolist():
            accesses, *cost = self._costs[number].tolist()
            self._machine.execution.tally(number).add(AccessCost(*cost), accesses)
