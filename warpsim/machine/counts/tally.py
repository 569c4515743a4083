"""What one instruction did in a launch: how often it ran, and what its accesses cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

import msgspec

from warpsim.machine.core.site import Site
from warpsim.machine.counts.access import AccessCost


@dataclass(slots=True)
class Tally:
    """Sums of one memory instruction."""

    accesses: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    tags: int = 0
    conflicts: int = 0
    l1_sectors: int = 0
    requests: int = 0
    """To global memory."""
    tma_sectors: int = 0
    multicast_sectors: int = 0
    """Received by all CTAs of multicasts together."""
    operand_wavefronts: int = 0

    def add(self, cost: AccessCost, accesses: int = 1) -> None:
        """What so many accesses cost together."""
        self.accesses += accesses
        self.wavefronts += cost.wavefronts
        self.ideal_wavefronts += cost.ideal_wavefronts
        self.sectors += cost.sectors
        self.ideal_sectors += cost.ideal_sectors
        self.tags += cost.tags
        self.conflicts += cost.conflicts
        self.l1_sectors += cost.l1_sectors
        self.requests += cost.requests

    def take(self, other: Tally) -> None:
        """What accesses of other CTAs, or of another launch, cost."""
        for field in fields(Tally):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def load(self, sectors: int, multicast_to: int) -> None:
        """A bulk load of so many sectors; multicast_to: CTAs that it names, 0 without multicast."""
        if multicast_to:
            self.multicast_sectors += sectors * multicast_to
        else:
            self.tma_sectors += sectors


NOTHING = Tally()
"""Of what makes no accesses: nobody adds to the tally of a count."""


class InstructionCount(msgspec.Struct, frozen=True, kw_only=True):
    """One instruction's totals over a launch."""

    instruction: Site
    executed: int
    """Warp instructions: of PTX those with at least one lane for which its guard holds, of SASS all
    (as ncu's inst_executed)."""
    lanes: int
    """Active lanes of these."""
    threads: int
    """Those of them for which the guard holds."""
    requests: int
    """Warp instructions with at least one lane for which its guard holds."""
    warps: int
    """The warps of a CTA that came to it, in any CTA, whatever its guard: bit 3 is warp 3."""
    tally: Tally
