"""Uses of the shared memory of other CTAs of a cluster: after these have begun, before they end."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array, sparse_zeros
from warpsim.machine.core.clocks import Clocks
from warpsim.machine.core.site import Site
from warpsim.machine.memory.residents import Cta, Residents


class Neighbours:
    """When each warp last used the shared memory of another CTA."""

    def __init__(self, residents: Residents, clocks: Clocks) -> None:
        self._residents = residents
        self._clocks = clocks
        self.last: Array = sparse_zeros((residents.resident, clocks.warps), np.int64)
        """By CTA and warp; 0: never."""
        self._users: dict[int, list[int]] = {}
        """Of each CTA, in the order in which they first did."""
        self._sites: dict[tuple[int, int], Site] = {}
        """Where a warp has used a CTA's memory, by CTA and warp: the last that was not an arrival
        made by compiled code."""

    def use(self, place: int, cta: int, site: Site) -> None:
        """A warp uses the shared memory of a CTA, which may be its own."""
        if place % self._residents.resident == cta:
            return
        if not self.last[cta, place]:
            self.reach(place, cta, site)
            self._users.setdefault(cta, []).append(place)
        self.last[cta, place] = self._clocks.now
        self._sites[cta, place] = site

    def reach(self, place: int, cta: int, site: Site) -> None:
        """A finding if a warp sends something to a CTA that may not have begun."""
        if place % self._residents.resident != cta and not self._known(place, cta):
            number = self._residents.ctas[cta].number
            self._residents.report(
                "remote-cta-not-started",
                f"shared memory of CTA {number}, and nothing makes sure that it has started.",
                site,
                place,
            )

    def _known(self, place: int, cta: int) -> bool:
        """Whether a warp has heard of any warp of a CTA."""
        # What a warp does to tensor memory stands for all it does: relaxed synchronisation
        # hands that over too, and is enough here.
        agents = self._clocks.tensor_memory
        others = [agents + other for other in self._residents.warps_of(cta)]
        return bool(self._clocks.seen[place, others].any())

    def end(self, cta: Cta) -> None:
        """A finding if nothing makes a CTA that ends wait for others' uses of its memory."""
        users = self._users.get(cta.place)
        if not users:
            return
        own, agents = self._residents.warps_of(cta.place), self._clocks.tensor_memory
        for place in users:
            if self._clocks.seen[own, agents + place].max() < self.last[cta.place, place]:
                self._residents.execution.findings.add(
                    "remote-cta-exited",
                    f"CTA {cta.number} may end before {self._residents.warp_name(place)} has used "
                    "its shared memory here: it waits for nothing that comes after.",
                    self._sites[cta.place, place],
                    cta=cta.number,
                )
