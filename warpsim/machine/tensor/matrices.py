"""8 x 8 matrices of b16 between shared memory and the registers of a warp (LDSM, STSM)."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.matrices import fragments
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import BadLanes
from warpsim.machine.core.marks import LOADED, MATRICES, Origin
from warpsim.machine.core.site import Site
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.arena import UNWRITTEN
from warpsim.machine.wave.machine import WarpSet


class MatrixAccess:
    """An instruction that moves `count` matrices, whose rows' addresses come from 8 lanes each."""

    def __init__(self, site: Site, count: int, transposed: bool, *, store: bool) -> None:
        self.access = AccessKind(site, 8, 2, store=store, pairs=False)
        self.count = count
        self.transposed = transposed

    def _rows(self, warps: WarpSet, addresses: Array) -> Array:
        """Arena offsets of the 8 * count rows, [n, 8 * count], checked, and counted once."""
        every: Mask = True
        if self.count < 4:
            every = np.zeros((warps.count, 32), bool)
            every[:, : 8 * self.count] = True
        space = warps.machine.shared_space
        offsets = space.offsets(warps, addresses, self.access, every)
        space.inside(warps, offsets, self.access, every)
        space.count(warps, offsets, self.access, every)
        return offsets[:, : 8 * self.count]

    def load(self, warps: WarpSet, addresses: Array) -> Array:
        """The registers of the matrices, [n, count, 32]."""
        machine, site = warps.machine, self.access.site
        fast, form = machine.shared_space.fast, (self.count, self.transposed)
        if fast is not None:
            values = fast.load_matrices(warps, addresses, *form, self.access)
            if values is not None:
                return values
        try:
            offsets = self._rows(warps, addresses)
        except BadLanes:
            return np.full((warps.count, self.count, 32), 0xFFFFFFFF, np.uint32)
        machine.races.matrix_read(warps, offsets, site, transposed=self.transposed)
        if machine.execution.follows and not machine.shared.readable(offsets, 16):
            self._unwritten(warps, offsets)
        return self._registers(machine.shared.view(8, 2)[offsets // 16])

    def _registers(self, rows: Array) -> Array:
        """Rows of 16 bytes, [n, 8 * count, ...], as the lanes get them, [n, count, 32]."""
        data = np.ascontiguousarray(rows)
        tiles = data.view(np.uint16).reshape(len(rows), self.count, 8, 8)
        return fragments.pairs(tiles.swapaxes(2, 3) if self.transposed else tiles)

    def _unwritten(self, warps: WarpSet, offsets: Array) -> None:
        """Marks the registers that get what nobody wrote."""
        machine, site = warps.machine, self.access.site
        states = machine.shared.state[offsets[..., None] + np.arange(16)]
        registers = self._registers(np.where(states == UNWRITTEN, 0xFF, 0).astype(np.uint8))
        octets = np.ascontiguousarray(registers).view(np.uint8) != 0
        lanes = octets.reshape(warps.count, self.count, 32, 4).swapaxes(1, 2)
        row = int(np.nonzero(lanes)[0][0])
        place = int(warps.warps[row])
        origin = Origin(LOADED.index(MATRICES), site.number, place, 0, 0)
        if not machine.undefined.load(site, warps, lanes, origin):
            sentence = f"{machine.undefined.sentence(origin)}."
            machine.report("uninitialised-read", sentence, site, int(warps.warps[0]))

    def store(self, warps: WarpSet, addresses: Array, values: Array) -> None:
        """Writes matrices given as registers, [n, count, 32]."""
        fast, form = warps.machine.shared_space.fast, (self.count, self.transposed)
        if fast and fast.store_matrices(warps, addresses, *form, values, self.access):
            return
        try:
            offsets = self._rows(warps, addresses)
        except BadLanes:
            return
        tiles = fragments.tiles(values)
        if self.transposed:
            tiles = np.ascontiguousarray(tiles.swapaxes(2, 3))
        races, site = warps.machine.races, self.access.site
        races.matrix_write(warps, offsets, site, transposed=self.transposed)
        rows = tiles.view(np.uint64).reshape(*offsets.shape, 2)
        warps.machine.shared.scatter(offsets, rows, 8, 2)
