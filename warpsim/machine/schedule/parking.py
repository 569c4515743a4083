"""Fragments that wait, and which of them to look at again after something has changed."""

from __future__ import annotations

from warpsim.machine.schedule.program import DecodedProgram
from warpsim.machine.sync.gates import ANYTHING, Fragment
from warpsim.machine.wave.machine import Machine


class Parking:
    """Every fragment that is parked at a gate is watched: it stands in the list of the one thing
    that has to change before it can go on, or among those that any change may let go."""

    def __init__(self, machine: Machine, program: DecodedProgram) -> None:
        self._machine = machine
        self._blocks = program.blocks
        self._parked = 0
        self.fragments: dict[Fragment, int] = {}
        """All, in the order in which they parked, and how many had parked before each."""
        self.gathering: dict[Fragment, None] = {}
        """Those at a `.sync` instruction until their other lanes come."""
        self.exits = False
        """Whether threads have exited since the last check: barriers no longer wait for them."""
        self._watchers: dict[object, list[Fragment]] = {}
        self._restless: list[Fragment] = []

    def wait(self, fragment: Fragment) -> None:
        """Parks a fragment at the gate that has not let it pass."""
        self._add(fragment)
        self.watch(fragment)

    def gather(self, fragment: Fragment) -> None:
        """Parks a fragment until its other lanes come."""
        fragment.gathering = True
        self._add(fragment)
        self.gathering[fragment] = None

    def _add(self, fragment: Fragment) -> None:
        self.fragments[fragment] = self._parked
        self._parked += 1
        machine, gate = self._machine, self._blocks[fragment.pc].gate
        if gate is not None and gate.pending:
            entered = not fragment.gathering
            machine.engines.want(fragment.waited if entered else gate.waited(machine, fragment))
        for barrier, _, _ in fragment.phases:
            if barrier is not None:
                machine.engines.wait_for(barrier.offset)

    def remove(self, fragment: Fragment) -> None:
        """The fragment goes on."""
        del self.fragments[fragment]
        self.gathering.pop(fragment, None)
        for barrier, _, _ in fragment.phases:
            if barrier is not None:
                self._machine.engines.wait_no_more(barrier.offset)

    def watch(self, fragment: Fragment) -> None:
        """The fragment is to be looked at again once its obstacle has changed."""
        gate = self._blocks[fragment.pc].gate
        assert gate is not None
        obstacle = gate.obstacle(self._machine, fragment)
        if obstacle is ANYTHING:
            self._restless.append(fragment)
        else:
            self._watchers.setdefault(obstacle, []).append(fragment)

    def to_check(self) -> list[Fragment]:
        """Those whose obstacles have changed since the last call, in the order in which they
        parked: each has to be removed or watched again."""
        changed = self._machine.changed
        if self.exits:
            self.exits = False
            self._watchers.clear()
            self._restless.clear()
            changed.clear()
            return [fragment for fragment in self.fragments if not fragment.gathering]
        fragments, self._restless = self._restless, []
        for place in changed:
            fragments += self._watchers.pop(place, ())
        changed.clear()
        if len(fragments) > 1:
            fragments.sort(key=self.fragments.__getitem__)
        return fragments
