"""Lanes that an instruction needs together: shuffles, __syncwarp, aligned barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.warps import ALL, expand, lanes_of
from warpsim.machine.schedule.batches import Batch, common
from warpsim.machine.schedule.parking import Parking
from warpsim.machine.schedule.partings import Partings
from warpsim.machine.schedule.program import BasicBlock, DecodedProgram
from warpsim.machine.sync.gates import Fragment
from warpsim.machine.wave.machine import Machine


class Gathering:
    """Fragments at a `.sync` instruction, until the other lanes that it names are there."""

    def __init__(
        self,
        machine: Machine,
        program: DecodedProgram,
        partings: Partings,
        parking: Parking,
        put: Callable[[Fragment], None],
    ) -> None:
        self._machine = machine
        self._blocks, self._sites = program.blocks, program.sites
        self._partings = partings
        self._parking = parking
        self._put = put
        self._passed: dict[Fragment, int] = {}
        """Lanes that went past a fragment, from where its branch ends."""
        self.arrivals: dict[int, int] = {}
        """How often an instruction has let more lanes of a warp in than those that came first."""

    def hold(self, batch: Batch, block: BasicBlock) -> bool:
        """Parks those of a batch whose other lanes are not here yet; False if all may go on."""
        if not block.exclusive:
            return batch.mask is not True and self._wait(batch, block)
        if self._divide(batch, block) or self._wait(batch, block):
            return True
        for fragment in batch.fragments:
            fragment.group = 0
        return False

    def _wait(self, batch: Batch, block: BasicBlock) -> bool:
        missing = []
        for row, fragment in enumerate(batch.fragments):
            fragment.pc = block.first
            met, fragment.gathered = fragment.gathered == block.first, -1
            missing.append(0 if met else self._missing(fragment, block, batch.set.R, row))
        if not any(missing):
            return False
        for fragment, lanes in zip(batch.fragments, missing, strict=True):
            if lanes:
                self._parking.gather(fragment)
            else:
                self._put(fragment)  # not as one that was let go: in a loop its lanes may part
        return True

    def _divide(self, batch: Batch, block: BasicBlock) -> bool:
        """Makes fragments of the lanes of a batch that have different masks; False if none have."""
        assert block.sync is not None
        parts: list[Fragment] = []
        for row, fragment in enumerate(batch.fragments):
            members = batch.set.R[block.sync][row]
            lanes_by_mask: dict[int, int] = {}
            for lane in lanes_of(fragment.mask):
                mask = int(members[lane])
                lanes_by_mask[mask] = lanes_by_mask.get(mask, 0) | 1 << lane
            parts += [
                Fragment(fragment.warp, lanes, block.first, fragment.meetings, group=mask)
                for mask, lanes in lanes_by_mask.items()
            ]
        if len(parts) == len(batch.fragments):
            for fragment, part in zip(batch.fragments, parts, strict=True):
                fragment.group = part.group
            return False
        for part in parts:
            self._put(part)
        return True

    def _missing(self, fragment: Fragment, block: BasicBlock, R: list[Array], row: int) -> int:
        here = fragment.mask | self._machine.exited[fragment.warp]
        return self._members(fragment, block, R, row) & ~here

    def _members(self, fragment: Fragment, block: BasicBlock, R: list[Array], row: int) -> int:
        """The lanes that an instruction needs."""
        if block.sync == -1:
            return ALL
        assert block.sync is not None
        # Groups of lanes may execute it together with a mask each.
        members = R[block.sync][row][expand([fragment.mask])[0]]
        return int(np.bitwise_or.reduce(members))

    def reunite(self) -> bool:
        """Lets fragments of a warp go on that together make up the lanes of an instruction."""
        places: dict[tuple[int, int, int], list[Fragment]] = {}
        for fragment in self._parking.gathering:
            pc = -1 if self._blocks[fragment.pc].anywhere else fragment.pc
            places.setdefault((fragment.warp, pc, fragment.group), []).append(fragment)
        woken = False
        for (warp, pc, _), fragments in places.items():
            if pc == -1:
                woken |= self._apart(fragments)
            else:
                woken |= self._together(warp, pc, fragments)
        return woken

    def _together(self, warp: int, pc: int, fragments: list[Fragment]) -> bool:
        """At one instruction: the fragments become one."""
        outer = common(fragments)
        whole = Fragment(warp, _union(fragments), pc, outer, group=fragments[0].group)
        if self._missing(whole, self._blocks[pc], self._machine.registers.arrays, warp):
            return False
        self.arrivals[pc] = self.arrivals.get(pc, 0) + len(fragments) - 1
        self._check_passed(whole, fragments)
        for fragment in fragments:
            self._parking.remove(fragment)
            self._partings.leave(warp, fragment.mask, fragment.meetings, len(outer))
        self._put(whole)
        return True

    def note_passed(self) -> None:
        """Lanes that wait where a branch ends are about to go on without those that gather in it:
        on hardware they would not."""
        for fragment in self._parking.gathering:
            for meeting in fragment.meetings:
                lanes = self._passed.get(fragment, 0) | meeting.arrived
                self._passed[fragment] = lanes & ~fragment.mask

    def _check_passed(self, whole: Fragment, fragments: list[Fragment]) -> None:
        """A finding if lanes that an instruction needs have gone past it, and exited since."""
        gone = 0
        for fragment in fragments:
            gone |= self._passed.pop(fragment, 0)
        rows, block = self._machine.registers.arrays, self._blocks[whole.pc]
        gone &= self._machine.exited[whole.warp] & ~whole.mask
        gone &= self._members(whole, block, rows, whole.warp)
        if not gone:
            return
        site = self._sites[whole.pc]
        sentence = f"{site.opcode} executed by lanes {whole.mask:#010x} only"
        name = "divergent-aligned" if block.gate is not None else "member-mask"
        sentence += f": lanes {gone:#010x} took another way."
        self._machine.report(name, sentence, site, whole.warp)

    def _apart(self, fragments: list[Fragment]) -> bool:
        """At different instructions that count as one: each fragment goes on where it is."""
        if len({fragment.pc for fragment in fragments}) == 1:
            return self._together(fragments[0].warp, fragments[0].pc, fragments)
        rows, here = self._machine.registers.arrays, _union(fragments)
        absent = [self._missing(f, self._blocks[f.pc], rows, f.warp) for f in fragments]
        present = [f for f, lanes in zip(fragments, absent, strict=True) if not lanes & ~here]
        for fragment in present:
            self._release(fragment)
        return bool(present)

    def _release(self, fragment: Fragment) -> None:
        self._parking.remove(fragment)
        fragment.gathering, fragment.gathered = False, fragment.pc
        self._put(fragment)

    def give_up(self, polling: Sequence[Fragment] = ()) -> bool:
        """Lets those go on who wait at an aligned barrier for lanes that don't come there.

        polling: lanes that may still come, once what they poll has changed.
        """
        lanes: dict[int, int] = {}
        for fragment in polling:
            lanes[fragment.warp] = lanes.get(fragment.warp, 0) | fragment.mask
        waiting = [
            group
            for group in self._parking.gathering
            if self._blocks[group.pc].gate is not None
            and not lanes.get(group.warp, 0) & ~group.mask
        ]
        for fragment in waiting:
            self._release(fragment)
        return bool(waiting)


def _union(fragments: list[Fragment]) -> int:
    lanes = 0
    for fragment in fragments:
        lanes |= fragment.mask
    return lanes
