"""The wait for a warp's groups of copies, those of lanes and those of its bulk stores (DEPBAR)."""

from __future__ import annotations

from dataclasses import dataclass

from warpsim.machine.copies.bulk import BulkWait
from warpsim.machine.copies.lane_copies import CopyWait
from warpsim.machine.core.asynchronous import Pending
from warpsim.machine.sync.gates import Fragment, PendingWait
from warpsim.machine.wave.machine import Machine


@dataclass(frozen=True, eq=False)
class GroupsWait(PendingWait):
    """At most `allowed` of the warp's groups of either kind are pending.

    A bulk store's group counts until it has written: the instruction is the same whether the
    program waits for that or only for its reads.
    """

    allowed: int

    what = "copies"

    def _kinds(self) -> tuple[PendingWait, ...]:
        bulk = BulkWait(self.site, self.allowed, reads_only=False, by_warp=True)
        return CopyWait(self.site, self.allowed), bulk

    def waited(self, machine: Machine, fragment: Fragment) -> list[Pending]:
        return [pending for kind in self._kinds() for pending in kind.waited(machine, fragment)]

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        for kind in self._kinds():
            kind.leave(machine, fragment)
