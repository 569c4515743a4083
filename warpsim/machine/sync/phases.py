"""Waits for the phases of mbarriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsim.machine.core.forms import CompiledForm
from warpsim.machine.core.registers import Slot
from warpsim.machine.core.warps import ALL, lanes_of
from warpsim.machine.memory.layout import WINDOW
from warpsim.machine.sync.gates import AddressSlot, Fragment, WaitGate
from warpsim.machine.wave.machine import Machine
from warpsim.machine.wave.mbarrier import STATE_SHIFT, Mbarrier


@dataclass(frozen=True, eq=False, kw_only=True)
class PhaseTest(WaitGate):
    """Whether a phase has completed, by its parity or by the state that an arrival returned."""

    at: AddressSlot
    plus: int | None = None
    """Slot that is added to the address."""
    wanted: int
    """Slot: parity or state."""
    shift: int = 0
    """Where in the slot the parity stands."""
    by_parity: bool
    result: int
    """Slot of the predicate."""
    suspends: bool
    """Whether the warp sleeps until it has, instead of going on with false."""
    acquires: bool

    def form(self, slots: Sequence[Slot]) -> CompiledForm | None:
        address, wanted = (slots[slot].bits for slot in (self.at.slot, self.wanted))
        if not {address, wanted} <= {32, 64}:
            return None
        places = self.result, self.at.slot, -1 if self.plus is None else self.plus, self.wanted
        how = address // 8, wanted // 8, self.shift, int(self.by_parity), int(self.acquires)
        return CompiledForm("mbarrier.wait", places, how, self.at.offset)

    def _asked(
        self, machine: Machine, fragment: Fragment
    ) -> tuple[tuple[Mbarrier | None, int, int], ...]:
        find, offset = machine.mbarriers.find, self.at.offset
        waits = tuple(
            [
                (find(fragment.warp, base + offset & WINDOW, self.site), want, lanes)
                for (base, want), lanes in self._groups(machine, fragment).items()
            ]
        )
        number = machine.cta_of(fragment.warp).number
        for barrier, _, _ in waits:
            if barrier is not None and barrier.cta != number:
                sentence = f"a wait for an mbarrier of another CTA: {barrier.describe()}."
                machine.report("mbarrier-misuse", sentence, self.site, fragment.warp)
        return waits

    def _groups(self, machine: Machine, fragment: Fragment) -> dict[tuple[int, int], int]:
        """Lanes by the address without its offset, and the parity or state."""
        addresses = machine.value(self.at.slot, fragment.warp)
        if self.plus is not None:
            addresses = addresses + machine.value(self.plus, fragment.warp)
        wanted = machine.value(self.wanted, fragment.warp)
        mask = fragment.mask
        if not mask & mask - 1:
            lane = mask.bit_length() - 1
            return {(int(addresses[lane]), int(wanted[lane]) >> self.shift): mask}
        bases, states = addresses.tolist(), wanted.tolist()
        if bases.count(bases[0]) == states.count(states[0]) == len(bases):
            return {(bases[0], states[0] >> self.shift): mask}
        groups: dict[tuple[int, int], int] = {}
        for lane in lanes_of(mask):
            key = bases[lane], states[lane] >> self.shift
            groups[key] = groups.get(key, 0) | 1 << lane
        return groups

    def _passed(self, barrier: Mbarrier | None, wanted: int) -> bool:
        if barrier is None:
            return True
        return barrier.passed(wanted) if self.by_parity else barrier.phase != wanted >> STATE_SHIFT

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        # Registers don't change while a warp sleeps: what it waits for is looked up once.
        fragment.phases = self._asked(machine, fragment)
        if super().enter(machine, fragment):
            return True
        # The instruction may give up at any time and say false. It does so once, so that a program
        # without a loop around it is found out; the next time round the warp sleeps.
        phases = sum(barrier.phase for barrier, _, _ in fragment.phases if barrier is not None)
        if not self.suspends or fragment.polls.get(self.site.number) != phases:
            fragment.polls[self.site.number] = phases
            self.leave(machine, fragment)
            return True
        return False

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        for barrier, wanted, _ in fragment.phases:
            if not self._passed(barrier, wanted):
                return False
        return True

    def obstacle(self, machine: Machine, fragment: Fragment) -> object:
        return next(
            barrier for barrier, wanted, _ in fragment.phases if not self._passed(barrier, wanted)
        )

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        result = machine.value(self.result, fragment.warp)
        for barrier, wanted, lanes in fragment.phases:
            passed = self._passed(barrier, wanted)
            result[slice(None) if lanes == ALL else lanes_of(lanes)] = passed
            if passed and barrier is not None and barrier.released is not None:
                row = barrier.released
                if not self.acquires:
                    row = machine.clocks.engines_only(row)
                machine.clocks.acquire(fragment.warp, row)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        # Lanes hold states of their own, for the same phase.
        waits = [
            f"{f'parity {wanted}' if self.by_parity else 'the end of a phase'} of "
            f"{barrier.describe()}"
            for barrier, wanted, _ in fragment.phases
            if barrier is not None and not self._passed(barrier, wanted)
        ]
        return "; ".join(dict.fromkeys(waits)) or "nothing more"
