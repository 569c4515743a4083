"""Lanes of a warp that part at a branch, and the places where they come together again.

A meeting is where the hardware would probably bring lanes together (BSSY and BSYNC), no barrier: if
nothing else can go on, who has arrived goes on without the others.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsim.machine.schedule.batches import Batch
from warpsim.machine.schedule.program import Branch
from warpsim.machine.sync.gates import Fragment, Meeting


class Partings:
    """The open meetings of all warps; `put` makes a fragment ready to run, `apart` decides whether
    lanes that come to a meeting go on without the others, as the hardware may."""

    def __init__(self, put: Callable[[Fragment], None], apart: Callable[[], bool]) -> None:
        self._put = put
        self._apart = apart
        self._open: dict[Meeting, tuple[int, tuple[Meeting, ...]]] = {}
        """(warp, the meeting and those around it) of meetings at which lanes wait."""

    def part(
        self, batch: Batch, taken: list[int], target: int, following: int, join: int | None
    ) -> None:
        """Fragments of a batch take a branch in part."""
        for fragment, mask in zip(batch.fragments, taken, strict=True):
            others = fragment.mask & ~mask
            if mask and others:
                self._divide(fragment, {target: mask, following: others}, join)
            else:
                fragment.pc = target if mask else following
                self._put(fragment)

    def table(self, batch: Batch, end: Branch, join: int | None) -> None:
        """brx.idx: lanes part by their index, one target at a time."""
        assert end.index is not None
        index = batch.set.R[end.index]
        for row, fragment in enumerate(batch.fragments):
            groups: dict[int, int] = {}
            for lane in range(32):
                if fragment.mask >> lane & 1:
                    target = end.targets[int(index[row, lane])]
                    groups[target] = groups.get(target, 0) | 1 << lane
            self._divide(fragment, groups, join)

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

    def meet(self, batch: Batch, pc: int) -> bool:
        """Parks what has reached its meeting place; False if nothing has."""
        if not any(f.meetings and f.meetings[-1].pc == pc for f in batch.fragments):
            return False
        for fragment in batch.fragments:
            fragment.pc = pc
            if fragment.meetings and fragment.meetings[-1].pc == pc:
                fragment.meetings[-1].arrived |= fragment.mask
                self._open[fragment.meetings[-1]] = fragment.warp, fragment.meetings
                if self._apart():
                    self._let_go(fragment.warp, fragment.meetings)
                else:
                    self._complete(fragment.warp, fragment.meetings)
            else:
                self._put(fragment)
        return True

    def _complete(self, warp: int, meetings: tuple[Meeting, ...]) -> None:
        """Lets the lanes of the innermost meeting go on if all are there."""
        meeting = meetings[-1]
        if meeting.arrived == meeting.expected and meeting.expected:
            self._let_go(warp, meetings)

    def _let_go(self, warp: int, meetings: tuple[Meeting, ...]) -> None:
        """Lets those go on who have arrived at the innermost meeting."""
        meeting, outer = meetings[-1], meetings[:-1]
        lanes, meeting.arrived = meeting.arrived, 0
        meeting.expected &= ~lanes
        self._open.pop(meeting, None)
        if outer and outer[-1].pc == meeting.pc:
            outer[-1].arrived |= lanes
            self._open[outer[-1]] = warp, outer
            self._complete(warp, outer)
        else:
            self._put(Fragment(warp, lanes, meeting.pc, outer))

    def leave(self, warp: int, lanes: int, meetings: tuple[Meeting, ...], keep: int = 0) -> None:
        """Lanes that no longer come to the meetings beyond the outermost `keep`."""
        for depth in range(len(meetings), keep, -1):
            meetings[depth - 1].expected &= ~lanes
            meetings[depth - 1].arrived &= ~lanes
            self._complete(warp, meetings[:depth])

    def give_up(self, warps: set[int] | None = None) -> bool:
        """Lets go who waits for other lanes of these warps, or of any; whether anybody did."""
        waiting = [x for x in self._open.values() if warps is None or x[0] in warps]
        for warp, meetings in waiting:
            if meetings[-1].arrived:
                self._let_go(warp, meetings)
        return bool(waiting)
