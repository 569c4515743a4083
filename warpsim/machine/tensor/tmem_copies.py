"""tcgen05.cp and tcgen05.shift: rows from shared to tensor memory, and rows moved by one there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpsim.arithmetic import narrow
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer, Pending
from warpsim.machine.core.site import UnsupportedInstruction
from warpsim.machine.core.tmem_areas import GRANULE, LANES, Area
from warpsim.machine.tensor import tensor_core
from warpsim.machine.tensor.matrix_operands import Matrix, fetch, span
from warpsim.machine.wave.machine import Machine

_EVERY = (0, LANES // GRANULE, 1)
_QUARTER = np.arange(4)[:, None] * 32
_ROW = np.arange(32)[None, :]
# CUTLASS, Copy_Traits of SM100_UTCCP_*: the lanes of each row, [copies, rows].
_LANES = {
    "128x256b": np.arange(128)[None, :],
    "128x128b": np.arange(128)[None, :],
    "64x128b.warpx2::02_13": np.arange(2)[:, None] * 64 + np.arange(64)[None, :],
    "64x128b.warpx2::01_23": np.arange(2)[:, None] * 32
    + np.concatenate([np.arange(32), np.arange(64, 96)])[None, :],
    "32x128b.warpx4": _QUARTER + _ROW,
    "4x256b": _QUARTER.T,
}
SHAPES = tuple(_LANES)
SHIFT_COLUMNS = 8
"""32 bytes."""


class TmemCopy(NamedTuple):
    """A tcgen05.cp as one thread issues it."""

    shape: str
    group: int
    """CTAs: each copies from its own shared memory."""
    to: int
    """Tensor-memory address."""
    source: int
    """Matrix descriptor."""
    bits: int = 0
    """Of the codes that it widens to bytes, 16 of them in 16 bytes; 0: it copies as is."""

    def matrix(self) -> Matrix:
        rows, width = self.shape.partition(".")[0].removesuffix("b").split("x")
        return Matrix(
            descriptor=self.source,
            rows=int(rows),
            element=1,
            transposed=False,
            sm100=True,
            row_bytes=int(width) // 8,
        )

    def lanes(self) -> Array:
        """[copies, rows]"""
        return _LANES[self.shape] + self.lane

    @property
    def lane(self) -> int:
        """Where the first row goes."""
        return self.to >> 16 & 127

    def area(self, cta: int) -> Area:
        granules = (self.lane // GRANULE, LANES // GRANULE, 2) if self.shape == "4x256b" else _EVERY
        column = self.to & 0xFFFF
        return Area(cta, granules, column, column + self.matrix().row_bytes // 4)


def copy(machine: Machine, issuer: Issuer, tmem_copy: TmemCopy) -> None:
    """Issues a copy to the tensor memory of each CTA of its group."""
    if tmem_copy.lane >= (32 if tmem_copy.shape == "4x256b" else 1):
        raise UnsupportedInstruction(
            f"{issuer.site.where()}: tcgen05.cp.{tmem_copy.shape} to lane {tmem_copy.lane}."
        )
    ctas = tensor_core.ctas_of(machine, issuer, tmem_copy.group)
    matrix, lanes = tmem_copy.matrix(), tmem_copy.lanes()
    areas = [_checked(machine, issuer, tmem_copy.area(cta)) for cta in ctas]
    for area in areas:
        machine.tmem.races.issue("a tcgen05.cp", area, issuer, ())
    request = machine.tmem.races.asked(issuer)

    def land() -> None:
        machine.clocks.tick()
        for area in areas:
            machine.tmem.races.land(area, issuer, (), request)
            data = fetch(machine, issuer, area.cta, matrix)
            if tmem_copy.bits:
                data = narrow.in_containers(narrow.of_chunks(data, tmem_copy.bits), tmem_copy.bits)
            window = area.cta, lanes, slice(area.first, area.end)
            machine.tmem.data[window] = data.view(np.uint32)
            machine.tmem.written[window] = True

    touches = [span(machine, cta, matrix) for cta in ctas] if machine.late else []
    _issue(machine, issuer, land, touches)


def shift(machine: Machine, issuer: Issuer, group: int, address: int) -> None:
    """Each row of 32 bytes gets what the next one holds, but for the last of each 32 (CUTLASS,
    CuTe DSL, tcgen05_shift and .ashift)."""
    if address >> 16 & 127:
        raise UnsupportedInstruction(
            f"{issuer.site.where()}: tcgen05.shift from lane {address >> 16 & 127} on."
        )
    column = address & 0xFFFF
    areas = [
        _checked(machine, issuer, Area(cta, _EVERY, column, column + SHIFT_COLUMNS))
        for cta in tensor_core.ctas_of(machine, issuer, group)
    ]
    for area in areas:
        machine.tmem.races.issue("a tcgen05.shift", area, issuer, (area,))
    request = machine.tmem.races.asked(issuer)

    def land() -> None:
        machine.clocks.tick()
        for area in areas:
            machine.tmem.races.land(area, issuer, (area,), request)
            machine.tmem.forget(area.cta)
            for memory in (machine.tmem.data, machine.tmem.written):
                quarters = memory[area.cta].reshape(4, 32, -1)[..., area.first : area.end]
                quarters[:, :-1] = quarters[:, 1:].copy()

    _issue(machine, issuer, land, [])


def _checked(machine: Machine, issuer: Issuer, area: Area) -> Area:
    """The area, with a finding if its columns are not allocated."""
    columns = area.end - area.first
    machine.tmem.check(area.cta, area.first, columns, issuer.site, issuer.place)
    return area


def _issue(
    machine: Machine, issuer: Issuer, land: Callable[[], None], touches: list[tuple[int, int]]
) -> None:
    what = f"a {issuer.site.opcode.split('.cta')[0]}"
    order = tensor_core.queue(machine, issuer)
    machine.engines.issue(Pending(what, land, issuer.site, order, tuple(touches), cta=order[1]))
