"""Matrices in the registers of a warp: ldmatrix, stmatrix, movmatrix."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.matrices import fragments
from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import MEMORIES, CompiledForm, Formed
from warpsim.machine.tensor.matrices import MatrixAccess
from warpsim.machine.wave.machine import Op, WarpSet

_SHARED = "{s:|.shared|.shared::cta}"
_X = "{x:x1|x2|x4}"


def _matrices(d: PtxDecoder, *, store: bool) -> MatrixAccess:
    parts = d.parts
    count = next(int(part[1]) for part in parts if part in ("x1", "x2", "x4"))
    d.note_unit("shared", 4)
    return MatrixAccess(d.site, count, "trans" in parts, store=store)


@builder(f"ldmatrix.sync.aligned.{_X}.m8n8{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"ldmatrix.sync.aligned.m8n8.{_X}{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"ldmatrix.sync.aligned.{_X}.trans.m8n8{_SHARED}.b16", sync=True)
def ldmatrix(d: PtxDecoder) -> Op:
    """8 x 8 matrices of b16, transposed or not."""
    matrices = _matrices(d, store=False)
    base, offset = d.addressed(d.operands[1])
    where = d.reader(base, offset)
    targets = d.destinations(d.operands[0], matrices.count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = matrices.load(warps, where(R))
        for index, slot in enumerate(targets):
            R[slot][...] = values[:, index]

    numbers = (MEMORIES["shared"], d.slots[base].bits // 8, matrices.count, matrices.transposed)
    if any(d.width(slot) != 32 for slot in targets):
        return op
    return Formed(op, CompiledForm("ldmatrix", (base, *targets), numbers, offset))


@builder(f"stmatrix.sync.aligned.{_X}.m8n8{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"stmatrix.sync.aligned.m8n8.{_X}{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"stmatrix.sync.aligned.{_X}.trans.m8n8{_SHARED}.b16", sync=True)
def stmatrix(d: PtxDecoder) -> Op:
    """8 x 8 matrices of b16, transposed or not."""
    matrices = _matrices(d, store=True)
    base, offset = d.addressed(d.operands[0])
    where = d.reader(base, offset)
    sources = d.sources(d.operands[1], "b32", matrices.count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        matrices.store(warps, where(R), np.stack([R[slot] for slot in sources], axis=1))

    numbers = (MEMORIES["shared"], d.slots[base].bits // 8, matrices.count, matrices.transposed)
    return Formed(op, CompiledForm("stmatrix", (base, *sources), numbers, offset))


@builder("movmatrix.sync.aligned.m8n8.trans.b16", sync=True)
def movmatrix(d: PtxDecoder) -> Op:
    """Transposes an 8 x 8 matrix of b16 held in one register per lane."""
    target, source = d.destination(d.operands[0]), d.source(d.operands[1], "b32")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        R[target][...] = fragments.pairs(fragments.tiles(R[source]).swapaxes(1, 2))

    return op
