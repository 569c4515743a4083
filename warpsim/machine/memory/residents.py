"""The CTAs that are resident: their warps' places, their shared memories, their names in findings.

A warp's place is (warp of its CTA) * resident CTAs + CTA, so that warps with one role in all CTAs
are neighbours and run as one set.
"""

from __future__ import annotations

import msgspec
import numpy as np

from warpsim.machine.core.arrays import Array, Mask, first_true
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import ALL, Warps
from warpsim.machine.memory.arena import SCRATCH_BYTES
from warpsim.machine.memory.execution import Execution
from warpsim.machine.memory.layout import GLOBAL_BASE, OFFSET_MASK, RANK_SHIFT
from warpsim.machine.memory.polls import Polls


class Cta(msgspec.Struct):
    """A resident CTA."""

    number: int
    """%ctaid as one number, x fastest."""
    place: int
    """Index among the resident CTAs; those of a cluster follow each other by rank."""
    index: tuple[int, int, int]
    rank: int
    cluster: int
    live_warps: int
    exited: bool = False


class Residents:
    """One wave: CTAs [first, ...) of a launch, as many as are resident at once."""

    def __init__(self, execution: Execution, first: int) -> None:
        self.execution = execution
        self.cluster_size = execution.cluster_size
        self.resident = execution.resident
        self.warps_per_cta = execution.warps_per_cta
        self.layout = execution.layout
        self.shared_stride = execution.layout.stride
        self.shared_limit = execution.layout.limit
        count = min(self.resident, execution.grid_ctas - first)
        self._end = first + count
        self.ctas = [self._cta(first + place, place) for place in range(count)]
        self.any_ended = False
        self.ended = np.zeros(self.resident, bool)
        """Which CTAs have, for compiled code."""
        self.polls = Polls()
        self.exited: dict[int, int] = {}
        """Lanes of each warp that have exited, or never existed."""
        self.changed: list[object] = []
        """What parked fragments may wait for and has changed since they were last looked at:
        barriers, mbarriers with a new phase, operations that have landed."""
        lanes = [min(32, execution.threads - 32 * warp) for warp in range(self.warps_per_cta)]
        absent = [
            (warp * self.resident, ALL & ~((1 << count) - 1)) for warp, count in enumerate(lanes)
        ]
        for cta in range(count):
            for first, mask in absent:
                self.exited[first + cta] = mask

    def _cta(self, number: int, place: int) -> Cta:
        # CTAs are numbered cluster by cluster, so that those of a cluster are neighbours.
        launch = self.execution.launch
        gx, gy, _ = launch.grid
        cx, cy, cz = launch.cluster
        cluster, rank = divmod(number, self.cluster_size)
        clusters_x, clusters_y = gx // cx, gy // cy
        base = (
            cluster % clusters_x * cx,
            cluster // clusters_x % clusters_y * cy,
            cluster // (clusters_x * clusters_y) * cz,
        )
        index = (base[0] + rank % cx, base[1] + rank // cx % cy, base[2] + rank // (cx * cy))
        linear = index[0] + gx * (index[1] + gy * index[2])
        return Cta(linear, place, index, rank, place // self.cluster_size, self.warps_per_cta)

    def cancel(self) -> tuple[int, int, int] | None:
        """%ctaid of the first CTA of a cluster that will not be launched; None if all have been."""
        if self.execution.grid_ctas <= self._end:
            return None
        self.execution.grid_ctas -= self.cluster_size
        return self._cta(self.execution.grid_ctas, 0).index

    def warp_place(self, cta: int, warp: int) -> int:
        return warp * self.resident + cta

    def cta_of(self, place: int) -> Cta:
        return self.ctas[place % self.resident]

    def warp_of(self, place: int) -> int:
        return place // self.resident

    def multicast(self, place: int, mask: int, site: Site) -> list[int]:
        """The resident CTAs that a warp names by a mask of ranks in its cluster."""
        if mask == 0 or mask >> self.cluster_size:
            size = self.cluster_size
            has = f"its {size} CTAs" if size > 1 else "one CTA: the launch says no cluster"
            sentence = f"the mask {mask:#x} does not fit the cluster of {has}."
            self.report("multicast-mask", sentence, site, place)
        cta = self.cta_of(place)
        first = cta.place - cta.rank
        return [first + rank for rank in range(self.cluster_size) if mask >> rank & 1]

    # Findings

    def report(
        self,
        name: str,
        sentence: str,
        site: Site | None,
        place: int = -1,
        cause: str = "",
        *,
        survived: bool = False,
    ) -> None:
        """A finding at an instruction of the warp at `place`, or of an engine; see Findings.add."""
        cta, warp = (-1, -1) if place < 0 else (self.cta_of(place).number, self.warp_of(place))
        self.execution.findings.add(
            name, sentence, site, cta=cta, warp=warp, cause=cause, survived=survived
        )

    def warp_name(self, place: int) -> str:
        return f"warp {self.warp_of(place)} of CTA {self.cta_of(place).number}"

    def thread_name(self, thread: int, beside: int = -1) -> str:
        """`thread (1, 0, 0) of block (3, 0, 0)`, of a warp's place * 32 + lane; without the block
        where the warp at `beside` is in it too."""
        place, lane = divmod(thread, 32)
        width, height, _ = self.execution.launch.block
        rows, x = divmod(32 * self.warp_of(place) + lane, width)
        z, y = divmod(rows, height)
        cta = self.cta_of(place)
        block = "" if beside >= 0 and self.cta_of(beside) is cta else f" of block {cta.index}"
        return f"thread ({x}, {y}, {z}){block}"

    def shared_name(self, offset: int, element: int = 0) -> str:
        """An arena offset as findings name it; element: in elements of that many bytes, if any."""
        cta, low = divmod(offset - SCRATCH_BYTES, self.shared_stride)
        return f"{self.layout.spell(low, element)} of CTA {self.ctas[cta].number}"

    def byte_at(self, space: str, address: int, element: int = 0) -> str:
        """Which byte, or element of so many, of what variable or array lies at an address; empty
        where nobody knows."""
        if space.endswith("shared"):
            return self.layout.byte_at(address & OFFSET_MASK, element)
        world = self.execution.world
        return world.byte_at(address - GLOBAL_BASE, element) if space == "global" else ""

    def shared_object(self, offset: int) -> str:
        """The variable at an arena offset."""
        return self.layout.name_at((offset - SCRATCH_BYTES) % self.shared_stride)

    # Shared memory by address: rank << 24 | offset

    def arena_offset(self, cta: int, low: int) -> int:
        return SCRATCH_BYTES + cta * self.shared_stride + low

    def shared_offset(self, place: int, address: int, site: Site) -> tuple[int, int, int]:
        """(arena offset, resident CTA, offset in it) of a shared or cluster address of a warp."""
        rank, low = address >> RANK_SHIFT, address & OFFSET_MASK
        if rank >= self.cluster_size or low >= self.shared_limit:
            self.report(
                "out-of-bounds",
                f"shared address {address:#x} is in no CTA of the cluster of {self.cluster_size}.",
                site,
                place,
            )
            raise Fatal
        cta = self.cta_of(place).place // self.cluster_size * self.cluster_size + rank
        if self.ctas[cta].exited:
            self.report(
                "remote-cta-exited",
                f"shared address {address:#x} is in CTA {self.ctas[cta].number}, which has ended.",
                site,
                place,
            )
        return self.arena_offset(cta, low), cta, low

    def warps_of(self, cta: int) -> list[int]:
        """The places of a CTA's warps."""
        return [self.warp_place(cta, warp) for warp in range(self.warps_per_cta)]

    def _refuse_ended(self, warps: Warps, ctas: Array, site: Site) -> None:
        """A finding for an access to shared memory of a CTA that has ended."""
        ended = [cta.place for cta in self.ctas if cta.exited]
        wrong = np.isin(ctas, ended)
        if wrong.any():
            row, lane = first_true(wrong)
            number = self.ctas[int(ctas[row, lane])].number
            sentence = f"shared memory of CTA {number}, which has ended (lane {lane})."
            self.report("remote-cta-exited", sentence, site, int(warps.warps[row]))

    def cluster_offsets(self, warps: Warps, address: Array, site: Site, m: Mask) -> Array:
        """Arena offsets of cluster addresses; Fatal with a finding for one outside the cluster."""
        value = address.astype(np.int64)
        rank, low = value >> RANK_SHIFT, value & OFFSET_MASK
        wrong: Array = (rank < 0) | (rank >= self.cluster_size) | (low >= self.shared_limit)
        wrong = wrong if m is True else wrong & m
        if wrong.any():
            row, lane = first_true(wrong)
            self.report(
                "out-of-bounds",
                f"cluster address {int(value[row, lane]):#x} (lane {lane}) lies in no CTA of the "
                f"cluster of {self.cluster_size}.",
                site,
                int(warps.warps[row]),
            )
            raise self.execution.fault(wrong)
        cta = warps.ctas[:, None] // self.cluster_size * self.cluster_size + rank
        if self.any_ended:
            self._refuse_ended(warps, cta if m is True else np.where(m, cta, -1), site)
        offsets: Array = SCRATCH_BYTES + cta * self.shared_stride + low
        return offsets if m is True else np.where(m, offsets, 0)
