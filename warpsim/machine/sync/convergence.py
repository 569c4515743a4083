"""Convergence barriers: where the lanes of a warp come together again (BSSY, BSYNC, BREAK).

Each lane of a warp belongs, for each barrier, to the group of those that entered it together. A
lane that reaches the end waits for all lanes of its group that have neither exited nor left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.warps import ALL, lanes_of, pack
from warpsim.machine.sync.gates import Fragment, WaitGate
from warpsim.machine.wave.machine import Machine, WarpSet


@dataclass(slots=True)
class BarrierGroup:
    """Lanes that entered a barrier together."""

    expected: int
    arrived: int = 0
    away: int = 0
    """Lanes that use the barrier for something else meanwhile, as in a function that they call."""

    def here(self) -> int:
        return self.expected & ~self.away


class BarrierGroups(dict[tuple[int, int], list[BarrierGroup]]):
    """By warp and barrier."""

    def __init__(self) -> None:
        self.kept: list[BarrierGroup] = []
        """Those that lanes are away from, by number."""
        self.yielded: dict[int, int] = {}
        """By warp, lanes that have executed YIELD, as those do that poll in a loop."""

    def of(self, warp: int, barrier: int, lanes: int) -> list[BarrierGroup]:
        """The groups that any of these lanes belong to."""
        return [group for group in self.get((warp, barrier), []) if group.here() & lanes]

    def leave(self, warp: int, barrier: int, lanes: int) -> None:
        """These lanes belong to no group any more."""
        groups = self.get((warp, barrier), [])
        for group in groups:
            group.expected &= ~(lanes & ~group.away)
        self[warp, barrier] = [group for group in groups if group.expected]


def masks(warps: WarpSet, m: Mask) -> list[int]:
    """The active lanes of each warp."""
    return [ALL] * warps.count if m is True else pack(m)


def enter(warps: WarpSet, m: Mask, barrier: int) -> None:
    """The active lanes of each warp will meet at a barrier's end."""
    groups = warps.machine.state(BarrierGroups)
    for warp, lanes in zip(warps.warps.tolist(), masks(warps, m), strict=True):
        if lanes:
            groups.leave(warp, barrier, lanes)
            groups[warp, barrier].append(BarrierGroup(lanes))


def leave(warps: WarpSet, m: Mask, barrier: int) -> None:
    """The active lanes will not come to the barrier's end."""
    groups = warps.machine.state(BarrierGroups)
    for warp, lanes in zip(warps.warps.tolist(), masks(warps, m), strict=True):
        groups.leave(warp, barrier, lanes)


def give_way(warps: WarpSet, m: Mask) -> None:
    """YIELD: who waits for the active lanes at a barrier's end may have to go on without them."""
    yielded = warps.machine.state(BarrierGroups).yielded
    for warp, lanes in zip(warps.warps.tolist(), masks(warps, m), strict=True):
        yielded[warp] = yielded.get(warp, 0) | lanes


def let_go(machine: Machine) -> bool:
    """Where nobody can go on: no barrier waits for lanes any more that have yielded; whether any
    did."""
    groups, changed = machine.state(BarrierGroups), False
    for (warp, _), known in groups.items():
        for group in known:
            missing = group.here() & ~group.arrived & ~machine.exited[warp]
            if group.arrived and missing and not missing & ~groups.yielded.get(warp, 0):
                group.expected &= ~missing
                changed = True
    return changed


def keep(warps: WarpSet, m: Mask, barrier: int) -> Array:
    """Takes the active lanes away from their groups: a number of each, 0 for none, [n, 32]."""
    groups, numbers = warps.machine.state(BarrierGroups), np.zeros((warps.count, 32), np.uint32)
    for row, (warp, lanes) in enumerate(zip(warps.warps.tolist(), masks(warps, m), strict=True)):
        for group in groups.of(warp, barrier, lanes):
            mine = group.here() & lanes
            group.away |= mine
            groups.kept.append(group)
            numbers[row, lanes_of(mine)] = len(groups.kept)
    return numbers


def give_back(warps: WarpSet, m: Mask, barrier: int, numbers: Array) -> None:
    """Brings the active lanes back to the groups that keep() took them away from."""
    groups = warps.machine.state(BarrierGroups)
    leave(warps, m, barrier)
    for row, _, lane in warps.each_lane(m):
        number = int(numbers[row, lane])
        if number:
            groups.kept[number - 1].away &= ~(1 << lane)


@dataclass(frozen=True, eq=False)
class Converge(WaitGate):
    """The end of a convergence barrier."""

    barrier: int
    unites = True

    def _groups(self, machine: Machine, fragment: Fragment) -> list[BarrierGroup]:
        return machine.state(BarrierGroups).of(fragment.warp, self.barrier, fragment.mask)

    def parts(self, machine: Machine, fragment: Fragment) -> Sequence[Fragment]:
        """Lanes of different groups, which have only come to run together, wait apart."""
        masks = [group.here() & fragment.mask for group in self._groups(machine, fragment)]
        rest = fragment.mask
        for mask in masks:
            rest &= ~mask
        masks += [rest] if rest else []
        if len(masks) == 1:
            return (fragment,)
        return [Fragment(fragment.warp, lanes, fragment.pc) for lanes in masks]

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        exited = machine.exited[fragment.warp]
        whole = True
        for group in self._groups(machine, fragment):
            group.arrived |= fragment.mask & group.here()
            whole = whole and not group.expected & ~exited & ~fragment.mask
        if whole:
            self.leave(machine, fragment)
        # Even if it is the last to come, it waits: all of the group go on together.
        return whole

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        exited = machine.exited[fragment.warp]
        groups = self._groups(machine, fragment)
        return not any(group.expected & ~group.arrived & ~exited for group in groups)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        machine.state(BarrierGroups).leave(fragment.warp, self.barrier, fragment.mask)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        missing = self.missing(machine, fragment)[fragment.warp]
        return f"lanes {missing:#010x} of its own warp"

    def missing(self, machine: Machine, fragment: Fragment) -> dict[int, int]:
        missing = 0
        for group in self._groups(machine, fragment):
            missing |= group.expected & ~group.arrived & ~machine.exited[fragment.warp]
        return {fragment.warp: missing}
