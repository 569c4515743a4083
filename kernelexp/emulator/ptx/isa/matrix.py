"""Warp-level matrices: ldmatrix, stmatrix, mma.sync, wmma, movmatrix."""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.arithmetic import fragments
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.forms import MEMORIES, Form, Formed
from kernelexp.emulator.machine.machine import Op, WarpSet
from kernelexp.emulator.machine.matrices import MatrixAccess
from kernelexp.emulator.ptx.decoder import Decoder
from kernelexp.emulator.ptx.registry import builder

_SHARED = "{s:|.shared|.shared::cta}"
_X = "{x:x1|x2|x4}"


def _matrices(d: Decoder, *, store: bool) -> MatrixAccess:
    parts = d.parts
    count = next(int(part[1]) for part in parts if part in ("x1", "x2", "x4"))
    d.note_unit("shared", 4)
    return MatrixAccess(d.site, count, "trans" in parts, store=store)


@builder(f"ldmatrix.sync.aligned.{_X}.m8n8{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"ldmatrix.sync.aligned.m8n8.{_X}{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"ldmatrix.sync.aligned.{_X}.trans.m8n8{_SHARED}.b16", sync=True)
def ldmatrix(d: Decoder) -> Op:
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
    return Formed(op, Form("ldmatrix", (base, *targets), numbers, offset))


@builder(f"stmatrix.sync.aligned.{_X}.m8n8{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"stmatrix.sync.aligned.m8n8.{_X}{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"stmatrix.sync.aligned.{_X}.trans.m8n8{_SHARED}.b16", sync=True)
def stmatrix(d: Decoder) -> Op:
    """8 x 8 matrices of b16, transposed or not."""
    matrices = _matrices(d, store=True)
    base, offset = d.addressed(d.operands[0])
    where = d.reader(base, offset)
    sources = d.sources(d.operands[1], "b32", matrices.count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        matrices.store(warps, where(R), np.stack([R[slot] for slot in sources], axis=1))

    numbers = (MEMORIES["shared"], d.slots[base].bits // 8, matrices.count, matrices.transposed)
    return Formed(op, Form("stmatrix", (base, *sources), numbers, offset))


@builder("movmatrix.sync.aligned.m8n8.trans.b16", sync=True)
def movmatrix(d: Decoder) -> Op:
    """Transposes an 8 x 8 matrix of b16 held in one register per lane."""
    target, source = d.destination(d.operands[0]), d.source(d.operands[1], "b32")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        R[target][...] = fragments.pairs(fragments.tiles(R[source]).swapaxes(1, 2))

    return op


@builder("mma.sync.aligned.{s:m16n8k8|m16n8k16}.row.col.{d:f32|f16}.f16.f16.{c:f32|f16}", sync=True)
@builder("mma.sync.aligned.{s:m16n8k8|m16n8k16}.row.col.f32.bf16.bf16.f32", sync=True)
@builder("mma.sync.aligned.{s:m16n8k4|m16n8k8}.row.col.f32.tf32.tf32.f32", sync=True)
@builder(
    "mma.sync.aligned.{s:m16n8k16|m16n8k32}.row.col{k:|.kind::f8f6f4}.{d:f32|f16}.{a:e4m3|e5m2}.{b:e4m3|e5m2}.{c:f32|f16}",
    sync=True,
)
@builder(
    "mma.sync.aligned.{s:m16n8k16|m16n8k32}.row.col{x:|.satfinite}.s32.{a:s8|u8}.{b:s8|u8}.s32",
    sync=True,
)
def mma(d: Decoder) -> Op:
    """Uses the precision of Hopper and Blackwell for any target: C and the products are aligned
    to the largest and truncated 25 bits below it."""
    parts = d.parts
    d_type, a_type, b_type, c_type = parts[-4:]
    k = int(parts[3].split("k")[1])
    width = fragments.WIDTH[a_type]
    a_count, b_count = 16 * k * width // 1024, 8 * k * width // 1024
    c_count, d_count = (4 if t in ("f32", "s32") else 2 for t in (c_type, d_type))
    targets = d.destinations(d.operands[0], d_count)
    a, b = (
        d.sources(operand, "b32", count)
        for operand, count in zip(d.operands[1:3], (a_count, b_count), strict=True)
    )
    c = d.sources(d.operands[3], "b32", c_count)
    satfinite = "satfinite" in parts
    d.multiplies(a_count, b_count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        left = fragments.operand([R[slot] for slot in a], 16, width)
        right = fragments.operand([R[slot] for slot in b], 8, width)
        addend = fragments.accumulator([R[slot] for slot in c])
        result = fragments.products(left, right, addend, a_type, b_type, d_type, satfinite)
        values = fragments.registers(result)
        for slot, value in zip(targets, values, strict=True):
            R[slot][...] = value

    return op
