"""Moves warps: picks fragments that can go on, runs them together, parks them where they wait."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np

from warpsim import compiled
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import LONGEST
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.native_layout import ENTERED
from warpsim.machine.core.warps import ALL, pack
from warpsim.machine.schedule import hangs
from warpsim.machine.schedule.batches import Batch, merge, runs
from warpsim.machine.schedule.gathering import Gathering
from warpsim.machine.schedule.hangs import Waiter
from warpsim.machine.schedule.interpreter import Interpreter, Place
from warpsim.machine.schedule.parking import Parking
from warpsim.machine.schedule.partings import Partings
from warpsim.machine.schedule.program import POLL, QUANTUM, BasicBlock, Branch, DecodedProgram
from warpsim.machine.schedule.stops import Stops
from warpsim.machine.sync import convergence, register_pool
from warpsim.machine.sync.gates import Fragment
from warpsim.machine.wave.machine import Machine

_SHORT = QUANTUM - 2 * POLL
"""Where the turn of a warp begins that has polled in vain."""
# Turns of polling after which it is looked whether any register has changed.
PATIENCE = 16

_warp = operator.attrgetter("warp")


class Scheduler:
    """Executes one wave of resident CTAs to its end."""

    goes_on = True
    """Whether compiled code may go on from block to block."""

    def __init__(self, machine: Machine, program: DecodedProgram, limit: int) -> None:
        self.machine = machine
        self.execution = machine.execution
        self.program = program = program.stopping() if machine.execution.shuffle else program
        self.blocks = program.blocks
        self.end = len(program.sites)
        self.chance = machine.execution.chance
        self.shuffle = machine.execution.shuffle
        self.limit = limit
        self.ready: dict[int, list[Fragment]] = {}
        self.parking = Parking(machine, program)
        self.entered = np.zeros((len(program.sites), ENTERED), np.int64)
        """What is counted of each block, by its first instruction."""
        self.exited = machine.exited
        self.hang: tuple[Waiter, ...] = ()
        self.tired: list[Fragment] = []
        """Had a turn as long as may be, and go on when the others have had theirs."""
        self.spent: dict[int, tuple[int, int]] = {}
        """How much of this turn a warp has used up, and in how many polls: lanes that part and meet
        go on where they stopped."""
        self.kept: dict[int, list[Fragment]] = {}
        """Those that have come to a gate that gathers, until nobody is ready."""
        self.polling = True
        """Whether all of these polled memory."""
        self.polled = 0
        """Turns in which nobody did anything but poll."""
        self.states: dict[int, int] = {}
        """How often the registers were seen to be the same meanwhile, by their hash."""
        machine.undefined.uses, machine.undefined.sites = program.uses, program.sites
        machine.execution.sites = program.sites
        self.interpreter: Interpreter | None = None
        if compiled.is_loaded():
            self.interpreter = Interpreter(machine, program, self.entered, self.goes_on)
        self.gates = program.gates if self.interpreter is not None and self.goes_on else {}
        self.stops = Stops(self.chance, machine.execution.chance_of_stop)
        self.partings = Partings(self._put, self._keeps_apart)
        self.gathering = Gathering(machine, program, self.partings, self.parking, self._put)

    def run(self) -> None:
        """Runs the machine's resident CTAs; Fatal ends the launch early."""
        self._start()
        while True:
            self._check_limit()
            if self.ready:
                for batch in self._pick():
                    self._run(batch)
            elif self.kept:
                self._enter_kept()
            elif self._wake():
                continue
            elif self.tired:
                self._next_turn()
            elif self.machine.engines.land_some():
                continue
            elif self._give_up():
                continue
            elif self.parking.fragments:
                self._hang("no warp can go on")
                return
            else:
                # A warp that got lost would pass for one that ended.
                assert all(self.exited[place] == ALL for place in self.exited)
                return

    def _give_up(self) -> bool:
        """Lets go who waits for lanes that will not come; whether anybody did."""
        self.gathering.note_passed()
        elsewhere = [f for f in self.parking.fragments if not f.gathering]
        if self.partings.give_up() or self.gathering.give_up(elsewhere):
            return True
        self.parking.exits = convergence.let_go(self.machine)
        return self.parking.exits

    def _start(self) -> None:
        self.ready[0] = [Fragment(place, ALL & ~mask, 0) for place, mask in self.exited.items()]

    def _put(self, fragment: Fragment) -> None:
        self.ready.setdefault(fragment.pc, []).append(fragment)

    def guarded(self) -> Array:
        """By number: executions of guarded instructions by sets of warps, warps with an active
        lane, active lanes."""
        guarded = np.zeros((len(self.program.sites), 3), np.int64)
        for warps in self.machine.sets.values():
            for number, counts in warps.predicated.items():
                guarded[number] += counts
        return guarded if self.interpreter is None else guarded + self.interpreter.guarded()

    # Picking

    def _pick(self) -> list[Batch]:
        """Batches at one instruction: mostly the first in program order, so that warps gather."""
        pcs = list(self.ready)
        strays = 0.5 if self.shuffle else 0.1
        pc = self.chance.choice(pcs) if self.chance.random() < strays else min(pcs)
        fragments = self.ready.pop(pc)
        if self.shuffle and len(fragments) > 1 and self.chance.random() < 0.5:
            fragments = self._part_of(fragments)
        return self._batches(fragments)

    def _part_of(self, fragments: list[Fragment]) -> list[Fragment]:
        """Some of those at one instruction; the others stay. They are neighbours in the order of
        warps or of CTAs, so that they make few sets."""
        resident, chance = self.machine.resident, self.chance
        by_warp = chance.random() < 0.5
        fragments.sort(key=_warp if by_warp else lambda f: (f.warp % resident, f.warp))
        first = chance.randrange(len(fragments))
        keep = chance.randrange(1, len(fragments) + 1)
        around = fragments[first:] + fragments[:first]
        for fragment in around[keep:]:
            self._put(fragment)
        return around[:keep]

    def _batches(self, fragments: list[Fragment]) -> list[Batch]:
        if len(fragments) == 1:
            return [self._batch(fragments)]
        fragments.sort(key=_warp)
        return [self._batch(run) for run in runs(merge(fragments), self.machine.resident)]

    def _batch(self, fragments: list[Fragment]) -> Batch:
        first, count = fragments[0].warp, len(fragments)
        step = fragments[1].warp - first if count > 1 else 1
        return Batch(self.machine.warp_set(first, count, step), fragments)

    # Running

    def _run(self, batch: Batch) -> None:
        """Runs a batch until it waits, parts or ends."""
        pc = batch.fragments[0].pc
        blocks, first = self.blocks, batch.fragments[0].warp
        turn, polls = self.spent.get(first, (0, 0))
        held = -1  # where compiled code has left a gate to Python
        if any(fragment.rested for fragment in batch.fragments):
            turn = min(turn, _SHORT)  # though other lanes of the warp have polled all its turn
            for fragment in batch.fragments:
                fragment.rested = False
        while turn < QUANTUM:
            if pc == self.end:
                self._exit(batch)
                return
            block = blocks[pc]
            if self._stays(batch, block):
                self.spent[first] = turn, polls
                return
            if block.gate is not None and (pc == held or pc not in self.gates):
                turn += block.weight
                polls += block.weight > 1
                self._count(batch, block)
                if not self._arrive(batch, block):
                    return
                pc = block.last
                continue
            pc, turn, polls, done = self._execute(batch, block, turn, polls)
            if not done:
                held = pc
                continue
            block = blocks[pc]
            self._decide(batch, block)
            end = block.end
            if end is None:
                pc = block.last
            elif isinstance(end, Branch):
                following = self._branch(batch, block, end)
                if following is None:
                    self.spent[first] = turn, polls
                    return
                pc = following
            else:
                self._exit(batch)
                return
        self._yield(batch, pc, polls > 0)

    def _stays(self, batch: Batch, block: BasicBlock) -> bool:
        """Whether a batch does not execute a block as it has come to it."""
        return (
            (batch.meets and block.joins and self.partings.meet(batch, block.first))
            or (block.stop and self._stop(batch, block.first))
            or (block.sync is not None and self.gathering.hold(batch, block))
        )

    def _execute(self, batch: Batch, block: BasicBlock, turn: int, polls: int) -> Place:
        """Executes a block, and perhaps those that follow."""
        if self.interpreter is not None:
            return self.interpreter.run(batch, block.first, turn, polls)
        self._count(batch, block)
        self._python(batch, block)
        return block.first, turn + block.weight, polls + (block.weight > 1), True

    def _count(self, batch: Batch, block: BasicBlock) -> None:
        """Counts a block that a batch executes."""
        self.entered[block.first, :2] += batch.set.count, batch.lanes
        self.entered[block.first, 2] |= batch.set.native.indices
        self.execution.steps += (block.last - block.first) * batch.set.count

    def _python(self, batch: Batch, block: BasicBlock) -> None:
        undefined, warps, mask = self.machine.undefined, batch.set, batch.mask
        if not (undefined.live or block.loads):
            for op in block.ops:
                op(warps.R, mask, warps)
            return
        for number, op in zip(block.numbers, block.ops, strict=True):
            if undefined.live:
                undefined.before(number, warps.R, warps, mask)
            op(warps.R, mask, warps)

    def _decide(self, batch: Batch, block: BasicBlock) -> None:
        """A finding if a block's branch depends on a marked value."""
        undefined = self.machine.undefined
        if undefined.live and isinstance(block.end, Branch) and block.end.guard is not None:
            undefined.decides(block.end.guard, batch.set, batch.mask, "decides a branch")

    def _check_limit(self) -> None:
        if self.execution.steps > self.limit or self.machine.clocks.now >= LONGEST:
            self.machine.report("step-limit", f"more than {self.limit} warp instructions.", None)
            raise Fatal
        last = self.execution.last_step
        if last is not None and self.execution.steps > last:
            raise Fatal

    def _yield(self, batch: Batch, pc: int, polled: bool) -> None:
        """The batch has run long: others get a turn."""
        for fragment in batch.fragments:
            fragment.pc = pc
            self.tired.append(fragment)
            self.spent[fragment.warp] = QUANTUM, int(polled)
        self.polling &= polled
        if polled:
            # Whom it waits for may be a lane of its own warps, gone ahead to a meeting place.
            self.partings.give_up({fragment.warp for fragment in batch.fragments})

    def _stop(self, batch: Batch, pc: int) -> bool:
        """Whether warps of a batch are stopped before an instruction: the others go on apart.

        Of a warp at a volatile store to shared memory, some lanes only: such code may rely on the
        lanes of a warp to go in step, which nothing but `__syncwarp()` promises.
        """
        stopped = self.stops.draw(batch.fragments, pc)
        if not stopped:
            return False
        in_step = self.program.sites[pc].opcode.startswith("st.volatile.shared")
        for fragment in batch.fragments:
            fragment.pc = pc
            if fragment not in stopped:
                self._put(fragment)
            elif in_step and (ahead := fragment.mask & self.chance.getrandbits(32)):
                if ahead == fragment.mask:
                    ahead &= ahead - 1
                fragment.mask &= ~ahead
                if ahead:
                    self._put(replace(fragment, mask=ahead, polls=dict(fragment.polls)))
        self.tired += stopped
        return True

    def _next_turn(self) -> None:
        """Everybody who could run has had a turn."""
        tired, self.tired = self.tired, []
        # Who has polled in vain polls but twice in the next turn: waiting costs less than work.
        polled = {f.warp for f in tired if self.spent.get(f.warp, (0, 0))[1]}
        self.spent = dict.fromkeys(polled, (_SHORT, 0))
        for fragment in tired:
            fragment.rested = True
            self._put(fragment)
        if self.stops.end_turn():
            return
        polling, self.polling = self.polling, True
        if not polling or self.machine.engines.land_some():
            self.polled, self.states = 0, {}
            return
        self.partings.give_up()
        # Registers that come back again and again, in turns in which all polled, always will. Lanes
        # that part and meet while they poll come back in another phase of their loop.
        self.polled += 1
        if self.polled % PATIENCE == 0:
            now = self._registers(tired)
            self.states[now] = self.states.get(now, 0) + 1
            if self.states[now] > 1 and not self.gathering.give_up(tired):
                self._hang("warps poll memory that nobody will change")
                raise Fatal

    def _registers(self, fragments: list[Fragment]) -> int:
        rows = sorted({fragment.warp for fragment in fragments})
        places = [(f.warp, f.mask, f.pc) for f in fragments]
        every = self.machine.registers.values()
        return hash((*places, b"".join(r[:, rows].tobytes() for r in every)))

    def _branch(self, batch: Batch, block: BasicBlock, end: Branch) -> int | None:
        """Where the whole batch goes, or None if it parted."""
        if end.index is not None:
            self.partings.table(batch, end, block.join)
            return None
        (target,) = end.targets
        if target == -1:
            target = self.end
        if end.guard is None or target == end.following:
            return target
        taken_lanes = batch.set.R[end.guard]
        if batch.mask is not True:
            taken_lanes = (~taken_lanes if end.negated else taken_lanes) & batch.mask
        elif end.negated:
            taken_lanes = ~taken_lanes
        count = taken_lanes.tobytes().count(1)  # which NumPy takes longer for
        if count == 0:
            return end.following
        if count == batch.lanes:
            return target
        self.partings.part(batch, pack(taken_lanes), target, end.following, block.join)
        return None

    def _exit(self, batch: Batch) -> None:
        machine, exited = self.machine, self.exited
        self.parking.exits = True
        for fragment in batch.fragments:
            warp = fragment.warp
            exited[warp] |= fragment.mask
            if fragment.meetings:
                self.partings.leave(warp, fragment.mask, fragment.meetings)
            if exited[warp] == ALL:
                cta = machine.cta_of(warp)
                cta.live_warps -= 1
                if cta.live_warps == 0:
                    register_pool.end(machine, cta)
                    machine.end_cta(cta)

    def _keeps_apart(self) -> bool:
        """Whether lanes that could meet do not: where the program asks who is there."""
        return self.shuffle and self.program.asks_who_is_active and self.chance.random() < 0.5

    # Waiting

    def _arrive(self, batch: Batch, block: BasicBlock) -> bool:
        """Comes to a gate; True if the whole batch may go on."""
        gate = block.gate
        assert gate is not None
        if not gate.gathers(self.machine, batch.fragments[0]):
            return self._enter(batch, block)
        if self.shuffle and self.chance.random() < 0.5:
            return self._enter(batch, block)
        if gate.pass_together(self.machine, batch.set, batch.fragments):
            return True
        self.kept.setdefault(block.first, []).extend(batch.fragments)
        return False

    def _enter_kept(self) -> None:
        """Those who were kept at gates enter them."""
        kept, self.kept = self.kept, {}
        for pc, fragments in kept.items():
            block = self.blocks[pc]
            for batch in self._batches(fragments):
                gate = block.gate
                assert gate is not None
                together = gate.pass_together(self.machine, batch.set, batch.fragments)
                if together or self._enter(batch, block):
                    for fragment in batch.fragments:
                        fragment.pc = block.last
                        self._put(fragment)

    def _enter(self, batch: Batch, block: BasicBlock) -> bool:
        """Enters a gate; True if the whole batch may go on."""
        gate, machine = block.gate, self.machine
        assert gate is not None
        parked: list[Fragment] = []
        passed: list[Fragment] = []
        for fragment in batch.fragments:
            for part in gate.parts(machine, fragment):
                part.pc = block.first
                (passed if gate.enter(machine, part) else parked).append(part)
        if not parked and len(passed) == len(batch.fragments):
            return True
        for fragment in parked:
            self.parking.wait(fragment)
        for fragment in passed:
            fragment.pc = block.last
            self._put(fragment)
        return False

    def _wake(self) -> bool:
        """Lets parked fragments go on that can; whether any could."""
        machine, parking = self.machine, self.parking
        woken: list[Fragment] = []
        united: dict[tuple[int, int], Fragment] = {}
        for fragment in parking.to_check():
            block = self.blocks[fragment.pc]
            gate = block.gate
            assert gate is not None
            if not gate.ready(machine, fragment):
                parking.watch(fragment)
                continue
            parking.remove(fragment)
            gate.leave(machine, fragment)
            fragment.pc = block.last
            whole = fragment
            if gate.unites:
                whole = united.setdefault((fragment.warp, fragment.pc), fragment)
                whole.mask |= fragment.mask
            if whole is fragment:
                woken.append(fragment)
        for fragment in woken:
            self._put(fragment)
        return self.gathering.reunite() or bool(woken)

    def _not_resident(self) -> str:
        resident, every = self.machine.resident, self.execution.grid_ctas
        if resident == every or not self.execution.image.polls:
            return ""
        return f" {resident:,} of {every:,} CTAs are resident at once: others wait for their end."

    def _hang(self, why: str) -> None:
        ready = [fragment for group in self.ready.values() for fragment in group]
        parked = list(self.parking.fragments)
        waiting = hangs.ordered(self.machine, [*parked, *ready, *self.tired])
        table = hangs.HangTable(self.machine, self.program, waiting)
        self.hang = table.waiters()
        first = self.hang[0]
        self.execution.findings.add(
            "hang",
            hangs.sentence(why, self.hang, table.cure() + self._not_resident()),
            self.program.sites[waiting[0].pc],
            cta=first.cta,
            warp=first.warp,
        )
