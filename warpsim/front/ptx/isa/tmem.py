"""Tensor memory: allocation, loads and stores by warps."""

from __future__ import annotations

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate, Operand
from warpsim.front.ptx.types import literal
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.tensor import tmem_access
from warpsim.machine.tensor.tmem_access import Alloc, TmemForm
from warpsim.machine.wave.machine import Op, WarpSet, each_warp

_GROUP = "{g:cta_group::1|cta_group::2}"


@builder(f"tcgen05.alloc.{_GROUP}.sync.aligned{{s:|.shared::cta}}.b32", gate=True)
def alloc(d: PtxDecoder) -> Alloc:
    """Waits for free columns; sizes, order of sizes and relinquished permits are checked."""
    group = 2 if "cta_group::2" in d.parts else 1
    return Alloc(d.site, d.pointer(d.operands[0]), d.source(d.operands[1], "u32"), group)


@builder(f"tcgen05.dealloc.{_GROUP}.sync.aligned.b32", sync=True)
def dealloc(d: PtxDecoder) -> Op:
    """Must free exactly what was allocated."""
    address, count = (d.source(operand, "b32") for operand in d.operands)
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, place in enumerate(warps.warps.tolist()):
            first, columns = int(R[address][row, 0]) & 0xFFFF, int(R[count][row, 0])
            warps.machine.tmem.free(warps.machine.cta_of(place).place, first, columns, site, place)

    return op


@builder(f"tcgen05.relinquish_alloc_permit.{_GROUP}.sync.aligned", sync=True)
def relinquish(d: PtxDecoder) -> Op:
    """Reports any later allocation as a finding."""
    return each_warp(lambda machine, warp: machine.tmem.relinquish(warp))


# Loads and stores


def _form(d: PtxDecoder, split: int) -> TmemForm:
    parts = d.parts
    if "pack::16b" in parts or "unpack::16b" in parts:
        raise d.refuse("packs 16-bit columns, which the emulator does not model")
    return TmemForm(d.site, parts[4], int(parts[5][1:]), split)


def _split(d: PtxDecoder, index: int) -> tuple[int, list[Operand]]:
    """The columns between the halves of a 16x32bx2 access, and the operands without them."""
    operands = list(d.operands)
    if d.parts[4] != "16x32bx2":
        return 0, operands
    split = operands.pop(index) if len(operands) == 3 else None
    if not isinstance(split, Immediate):
        raise d.refuse("has no immediate offset of its second half")
    return literal(split, "u32"), operands


_SHAPES = "{s:32x32b|16x256b|16x128b|16x64b|16x32bx2}.{x:x1|x2|x4|x8|x16|x32|x64|x128}"


@builder(f"tcgen05.ld.sync.aligned.{_SHAPES}{{p:|.pack::16b}}.b32", sync=True)
def ld(d: PtxDecoder) -> Op:
    """A register read before wait::ld is a warning. pack::16b is rejected."""
    split, (to, address, *_) = _split(d, 2)
    form, at = _form(d, split), d.pointer(address)
    targets = d.destinations(to, form.registers)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        addresses = [at.value(R, row, 0) for row in range(warps.count)]
        tmem_access.load(warps, addresses, form, targets)

    return op


@builder("tcgen05.wait::ld.sync.aligned", sync=True)
def wait_ld(d: PtxDecoder) -> Op:
    """All loads of the warp so far are in their registers."""
    return each_warp(tmem_access.wait_loads)


@builder(f"tcgen05.st.sync.aligned.{_SHAPES}{{p:|.unpack::16b}}.b32", sync=True)
def st(d: PtxDecoder) -> Op:
    """Lands at wait::st."""
    split, (address, values, *_) = _split(d, 1)
    form, at = _form(d, split), d.pointer(address)
    sources = d.sources(values, "b32", form.registers)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, place in enumerate(warps.warps.tolist()):
            stored = np.stack([R[slot][row] for slot in sources], axis=-1)
            tmem_access.store(warps.machine, place, at.value(R, row, 0), form, stored)

    return op


@builder("tcgen05.wait::st.sync.aligned", sync=True)
def wait_st(d: PtxDecoder) -> Op:
    """All stores of the warp so far are in tensor memory."""
    return each_warp(tmem_access.wait_stores)
