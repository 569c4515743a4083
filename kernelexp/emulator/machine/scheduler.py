"""Moves warps: picks fragments that can go on, runs them together, parks them where they wait."""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.batches import Batch, common, merge, runs
from kernelexp.emulator.machine.findings import Fatal
from kernelexp.emulator.machine.gates import Fragment, Meeting
from kernelexp.emulator.machine.hangs import Waiter, waiters
from kernelexp.emulator.machine.machine import Machine
from kernelexp.emulator.machine.program import Block, Branch, Program
from kernelexp.emulator.machine.warps import ALL, expand, pack

# Blocks that a batch may run before others get their turn: a loop that polls memory must end some
# time, and most batches stop at a barrier long before.
QUANTUM = 4000


class Scheduler:
    """Executes one wave of resident CTAs to its end."""

    def __init__(self, machine: Machine, program: Program, shuffle: bool, limit: int) -> None:
        self.machine = machine
        self.execution = machine.execution
        self.program = program
        self.blocks = program.blocks
        self.end = len(program.sites)
        self.chance = machine.execution.chance
        self.shuffle = shuffle
        self.limit = limit
        self.ready: dict[int, list[Fragment]] = {}
        self.parked: list[Fragment] = []
        self.executed: dict[int, int] = {}
        """Times a block ran, in warps, by its first instruction."""
        self.lanes: dict[int, int] = {}
        self.exited = machine.exited
        self.hang: tuple[Waiter, ...] = ()
        self.polled: tuple[int, int] | None = None
        """Where and with which registers a lone batch was when its turn ended."""

    def run(self) -> None:
        """Runs the machine's resident CTAs; Fatal ends the launch early."""
        self._start()
        while True:
            self._check_limit()
            if self.ready:
                for batch in self._pick():
                    self._run(batch)
            elif self._wake() or self.machine.engines.land_one():
                continue
            elif self.parked:
                self._hang("no warp can go on")
                return
            else:
                # A warp that got lost would pass for one that ended.
                assert all(self.exited[place] == ALL for place in self.exited)
                return

    def _start(self) -> None:
        for place, absent in self.exited.items():
            self._put(Fragment(place, ALL & ~absent, 0))

    def _put(self, fragment: Fragment) -> None:
        self.ready.setdefault(fragment.pc, []).append(fragment)

    # Picking

    def _pick(self) -> list[Batch]:
        """Batches at one instruction: mostly the first in program order, so that warps gather."""
        pcs = list(self.ready)
        strays = 0.5 if self.shuffle else 0.1
        pc = self.chance.choice(pcs) if self.chance.random() < strays else min(pcs)
        fragments = self.ready.pop(pc)
        if self.shuffle and len(fragments) > 1 and self.chance.random() < 0.5:
            self.chance.shuffle(fragments)
            keep = self.chance.randrange(1, len(fragments) + 1)
            for fragment in fragments[keep:]:
                self._put(fragment)
            del fragments[keep:]
        fragments.sort(key=lambda fragment: fragment.warp)
        return [self._batch(run) for run in runs(merge(fragments))]

    def _batch(self, fragments: list[Fragment]) -> Batch:
        return Batch(self.machine.warp_set(fragments[0].warp, len(fragments)), fragments)

    # Running

    def _run(self, batch: Batch) -> None:
        """Runs a batch until it waits, parts or ends."""
        pc = batch.fragments[0].pc
        blocks, executed, lanes = self.blocks, self.executed, self.lanes
        execution, warps = self.execution, batch.set
        R, mask = warps.R, batch.mask
        for _ in range(QUANTUM):
            if pc == self.end:
                self._exit(batch)
                return
            block = blocks[pc]
            if batch.meets and block.joins and self._meet(batch, pc):
                return
            if block.sync is not None and mask is not True and self._gather(batch, block):
                return
            executed[pc] = executed.get(pc, 0) + warps.count
            lanes[pc] = lanes.get(pc, 0) + batch.lanes
            warps.ran.add(pc)
            execution.steps += (block.last - block.first) * warps.count
            if block.gate is not None:
                if not self._enter(batch, block):
                    return
                pc = block.last
                continue
            for op in block.ops:
                op(R, mask, warps)
            end = block.end
            if end is None:
                pc = block.last
            elif isinstance(end, Branch):
                following = self._branch(batch, block, end)
                if following is None:
                    return
                pc = following
            else:
                self._exit(batch)
                return
        self._yield(batch, pc)

    def _check_limit(self) -> None:
        if self.execution.steps > self.limit:
            self.machine.report("step-limit", f"more than {self.limit} warp instructions.", None)
            raise Fatal

    def _yield(self, batch: Batch, pc: int) -> None:
        """The batch has run long: give others a turn, and the engines too if nobody else runs."""
        for fragment in batch.fragments:
            fragment.pc = pc
            self._put(fragment)
        if len(self.ready) > 1 or self._wake() or self.machine.engines.land_one():
            self.polled = None
            return
        # Nobody else can do anything. Registers that are the same after thousands of blocks, at the
        # same place, will be so for ever.
        state = (pc, self._registers(batch))
        if state == self.polled:
            self._hang("warps poll memory that nobody will change")
            raise Fatal
        self.polled = state

    def _registers(self, batch: Batch) -> int:
        rows = slice(int(batch.set.warps[0]), int(batch.set.warps[-1]) + 1)
        return hash(b"".join(r[rows].tobytes() for r in self.machine.registers.registers.values()))

    def _branch(self, batch: Batch, block: Block, end: Branch) -> int | None:
        """Where the whole batch goes, or None if it parted."""
        if end.index is not None:
            self._table(batch, block, end)
            return None
        (target,) = end.targets
        if target == -1:
            target = self.end
        if end.guard is None or target == end.following:
            return target
        taken = batch.set.R[end.guard]
        if batch.mask is not True:
            taken = (~taken if end.negated else taken) & batch.mask
            count = np.count_nonzero(taken)
        else:
            count = np.count_nonzero(taken)
            if end.negated:
                taken, count = ~taken, batch.lanes - count
        if count == 0:
            return end.following
        if count == batch.lanes:
            return target
        self._part(batch, pack(taken), target, end.following, block.join)
        return None

    def _table(self, batch: Batch, block: Block, end: Branch) -> None:
        """brx.idx: lanes part by their index, one target at a time."""
        assert end.index is not None
        index = batch.set.R[end.index]
        rest = [fragment.mask for fragment in batch.fragments]
        for row, fragment in enumerate(batch.fragments):
            groups: dict[int, int] = {}
            for lane in range(32):
                if rest[row] >> lane & 1:
                    target = end.targets[int(index[row, lane])]
                    groups[target] = groups.get(target, 0) | 1 << lane
            self._divide(fragment, groups, block.join)

    def _part(
        self, batch: Batch, taken: list[int], target: int, following: int, join: int | None
    ) -> None:
        for fragment, mask in zip(batch.fragments, taken, strict=True):
            groups = {target: mask, following: fragment.mask & ~mask}
            self._divide(fragment, {pc: lanes for pc, lanes in groups.items() if lanes}, join)

    def _divide(self, fragment: Fragment, groups: dict[int, int], join: int | None) -> None:
        if len(groups) == 1:
            (fragment.pc,) = groups
            self._put(fragment)
            return
        meetings = fragment.meetings
        if join is not None and not (meetings and meetings[-1].pc == join):
            meetings = (*meetings, Meeting(join, fragment.mask))
        for pc, lanes in groups.items():
            self._put(Fragment(fragment.warp, lanes, pc, meetings, polls=dict(fragment.polls)))

    # Lanes that come together, and that leave

    def _meet(self, batch: Batch, pc: int) -> bool:
        """Parks what has reached its meeting place; False if nothing has."""
        if not any(f.meetings and f.meetings[-1].pc == pc for f in batch.fragments):
            return False
        for fragment in batch.fragments:
            fragment.pc = pc
            if fragment.meetings and fragment.meetings[-1].pc == pc:
                fragment.meetings[-1].arrived |= fragment.mask
                self._complete(fragment.warp, fragment.meetings)
            else:
                self._put(fragment)
        return True

    def _complete(self, warp: int, meetings: tuple[Meeting, ...]) -> None:
        """Lets the lanes of the innermost meeting go on if all are there."""
        meeting = meetings[-1]
        if meeting.arrived != meeting.expected or not meeting.expected:
            return
        lanes, meeting.expected = meeting.expected, 0
        outer = meetings[:-1]
        if outer and outer[-1].pc == meeting.pc:
            outer[-1].arrived |= lanes
            self._complete(warp, outer)
        else:
            self._put(Fragment(warp, lanes, meeting.pc, outer))

    def _leave(self, warp: int, lanes: int, meetings: tuple[Meeting, ...], keep: int = 0) -> None:
        """Lanes that no longer come to the meetings beyond the outermost `keep`."""
        for depth in range(len(meetings), keep, -1):
            meetings[depth - 1].expected &= ~lanes
            meetings[depth - 1].arrived &= ~lanes
            self._complete(warp, meetings[:depth])

    def _exit(self, batch: Batch) -> None:
        machine = self.machine
        for fragment in batch.fragments:
            self.exited[fragment.warp] |= fragment.mask
            self._leave(fragment.warp, fragment.mask, fragment.meetings)
            if self.exited[fragment.warp] == ALL:
                cta = machine.cta_of(fragment.warp)
                cta.live_warps -= 1
                if cta.live_warps == 0:
                    machine.end_cta(cta)

    # Waiting

    def _gather(self, batch: Batch, block: Block) -> bool:
        """Parks the batch if an instruction of it needs lanes that are not here yet."""
        missing = []
        for row, fragment in enumerate(batch.fragments):
            fragment.pc = block.first
            missing.append(self._missing(fragment, block, batch.set.R, row))
        if not any(missing):
            return False
        for fragment, lanes in zip(batch.fragments, missing, strict=True):
            if lanes:
                self.parked.append(fragment)
            else:
                self._put(fragment)
        return True

    def _missing(self, fragment: Fragment, block: Block, R: list[Array], row: int) -> int:
        here = fragment.mask | self.exited[fragment.warp]
        if block.sync == -1:
            return ALL & ~here
        assert block.sync is not None
        # Groups of lanes may execute it together with a mask each.
        members = R[block.sync][row][expand([fragment.mask])[0]]
        return int(np.bitwise_or.reduce(members)) & ~here

    def _enter(self, batch: Batch, block: Block) -> bool:
        """Arrives at a gate; True if the whole batch may go on."""
        gate = block.gate
        assert gate is not None
        machine, parked = self.machine, []
        for fragment in batch.fragments:
            fragment.pc = block.first
            if not gate.enter(machine, fragment):
                parked.append(fragment)
        if not parked:
            return True
        self.parked += parked
        for fragment in batch.fragments:
            if fragment not in parked:
                fragment.pc = block.last
                self._put(fragment)
        return False

    def _wake(self) -> bool:
        """Lets parked fragments go on that can; whether any could."""
        machine, still, woken = self.machine, [], False
        waiting, self.parked = self.parked, []
        for fragment in waiting:
            block = self.blocks[fragment.pc]
            if block.gate is not None and block.gate.ready(machine, fragment):
                block.gate.leave(machine, fragment)
                fragment.pc = block.last
                self._put(fragment)
                woken = True
            else:
                still.append(fragment)
        self.parked += still
        return self._reunite() or woken

    def _reunite(self) -> bool:
        """Fragments of a warp parked at one `.sync` instruction that together make up its lanes."""
        places: dict[tuple[int, int], list[Fragment]] = {}
        for fragment in self.parked:
            if self.blocks[fragment.pc].gate is None:
                places.setdefault((fragment.warp, fragment.pc), []).append(fragment)
        woken = False
        for (warp, pc), fragments in places.items():
            lanes = 0
            for fragment in fragments:
                lanes |= fragment.mask
            outer = common(fragments)
            whole = Fragment(warp, lanes, pc, outer)
            if self._missing(whole, self.blocks[pc], self.machine.registers.arrays, warp):
                continue
            for fragment in fragments:
                self.parked.remove(fragment)
                self._leave(warp, fragment.mask, fragment.meetings, len(outer))
            self._put(whole)
            woken = True
        return woken

    def _hang(self, why: str) -> None:
        waiting = [*self.parked, *(f for group in self.ready.values() for f in group)]
        self.hang = waiters(self.machine, self.program, waiting)
        first = self.hang[0]
        self.execution.findings.add(
            "hang",
            f"{why}: {len(waiting)} waiting; CTA {first.cta} warp {first.warp} at {first.where} "
            f"waits for {first.waits_for}.",
            self.program.sites[self.parked[0].pc] if self.parked else None,
            cta=first.cta,
            warp=first.warp,
        )
