"""Tensor memory: 128 lanes of 512 columns of 32 bits per CTA, allocated in columns."""

from __future__ import annotations

import numpy as np

from warpsim.machine.checks.tmem_races import TmemRaces
from warpsim.machine.core.arrays import POISON, Array
from warpsim.machine.core.clocks import Clocks
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.site import Site
from warpsim.machine.core.tmem_areas import COLUMNS, LANES, Area
from warpsim.machine.memory.residents import Residents


class TensorMemory:
    """Tensor memory of all resident CTAs."""

    def __init__(self, residents: Residents, clocks: Clocks) -> None:
        self.residents = residents
        self._clocks = clocks
        self._races: TmemRaces | None = None
        self.allocated: dict[int, dict[int, int]] = {}
        self.sites: dict[tuple[int, int], Site] = {}
        """Which instruction allocated columns of a CTA last, by the first of them."""
        """Columns of each allocation by its first column, by CTA."""
        self._relinquished: set[int] = set()
        self._last: dict[int, int] = {}
        """Columns of the last allocation, by CTA."""
        self._group = 0
        """The cta_group of the first instruction that named one."""
        self._whole: set[Area] = set()
        """Areas that are known to be written."""
        self._data: Array | None = None
        self._written: Array | None = None

    @property
    def data(self) -> Array:
        """uint32 [CTA, lane, column], poison where nothing was written."""
        if self._data is None:
            self._data = np.full((self.residents.resident, LANES, COLUMNS), POISON[32], np.uint32)
        return self._data

    @property
    def races(self) -> TmemRaces:
        if self._races is None:
            self._races = TmemRaces(self.residents, self._clocks)
        return self._races

    @property
    def written(self) -> Array:
        if self._written is None:
            self._written = np.zeros((self.residents.resident, LANES, COLUMNS), bool)
        return self._written

    def is_written(self, area: Area, lanes: Array | slice, columns: Array | slice) -> bool:
        """Whether these lanes and columns of its CTA, all of the area, have been written."""
        if area not in self._whole and self.written[area.cta, lanes, columns].all():
            self._whole.add(area)
        return area in self._whole

    def wrote(self, area: Area, lanes: Array | slice, columns: Array | slice) -> None:
        """They have been written."""
        if area not in self._whole:
            self.written[area.cta, lanes, columns] = True
            self._whole.add(area)

    def forget(self, cta: int) -> None:
        """Some of what was written there is no more."""
        self._whole = {area for area in self._whole if area.cta != cta}

    def grouped(self, group: int, site: Site, place: int) -> None:
        """A finding if the kernel uses another cta_group elsewhere."""
        if self._group and group != self._group:
            sentence = f"cta_group::{group} in a kernel that uses cta_group::{self._group}."
            self.residents.report("tcgen05-group", sentence, site, place)
        self._group = self._group or group

    def request(self, columns: int, site: Site, place: int) -> None:
        """Checks an allocation that a warp asks for."""
        cta = self.residents.cta_of(place).place
        last = self._last.get(cta, COLUMNS)
        faults = []
        if columns & (columns - 1) or not 32 <= columns <= COLUMNS:
            faults.append(f"{columns} columns: powers of two from 32 to {COLUMNS} are allowed")
        if cta in self._relinquished:
            faults.append("an allocation after relinquish_alloc_permit")
        if columns > last:
            faults.append(f"{columns} columns after {last}: allocations must not grow")
        for fault in faults:
            self.residents.report("tmem-allocation", fault + ".", site, place)
        self._last[cta] = columns

    def relinquish(self, place: int) -> None:
        """The warp's CTA allocates no more."""
        self._relinquished.add(self.residents.cta_of(place).place)

    def free_at(self, cta: int, columns: int) -> int | None:
        """First column of a free, aligned run of `columns`; None if there is none."""
        used = np.zeros(COLUMNS, bool)
        for first, count in self.allocated.get(cta, {}).items():
            used[first : first + count] = True
        for first in range(0, COLUMNS - columns + 1, max(32, columns)):
            if not used[first : first + columns].any():
                return first
        return None

    def allocate(self, cta: int, columns: int, site: Site) -> int | None:
        first = self.free_at(cta, columns)
        if first is not None:
            self.allocated.setdefault(cta, {})[first] = columns
            self.sites[cta, first] = site
            # What a previous owner left must not be relied on.
            self.data[cta, :, first : first + columns] = POISON[32]
            self.written[cta, :, first : first + columns] = False
            self.forget(cta)
            self.races.clear(cta, first, columns)
        return first

    def free(self, cta: int, first: int, columns: int, site: Site, place: int) -> None:
        held = self.allocated.get(cta, {})
        if held.get(first) != columns:
            self.residents.report(
                "tmem-allocation",
                f"tcgen05.dealloc of {columns} columns from {first}; held: {held or 'none'}.",
                site,
                place,
            )
            return
        if self.races.busy(cta, first, columns):
            sentence = f"columns {first} to {first + columns - 1} are freed while in use."
            self.residents.report("tmem-race", sentence, site, place)
        elif who := self.races.unseen(cta, first, columns, place):
            sentence = (
                f"columns {first} to {first + columns - 1} are freed here, {who} used them before, "
                "and nothing orders the two."
            )
            self.residents.report("tmem-race", sentence, site, place)
        del held[first]

    def check(self, cta: int, first: int, columns: int, site: Site, place: int) -> None:
        """Columns [first, first + columns) must lie in one allocation of the CTA."""
        for start, count in self.allocated.get(cta, {}).items():
            if start <= first and first + columns <= start + count:
                return
        held = self.allocated.get(cta, {})
        self.residents.report(
            "tmem-bounds",
            f"columns {first} to {first + columns - 1} lie outside what CTA "
            f"{self.residents.ctas[cta].number} allocated ({held or 'nothing'}).",
            site,
            place,
        )
        if first + columns > COLUMNS:
            raise Fatal
