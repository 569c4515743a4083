"""Warp-level matrices: ldmatrix, stmatrix, mma.sync, wmma, movmatrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelexp.emulator.arithmetic import tensor
from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.memory import address, note_unit
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine.spaces import Site
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

LANE = np.arange(32)
_SHARED = "{s:|.shared|.shared::cta}"
_X = "{x:x1|x2|x4}"


def _site(ins: Instruction, d: Decoder, store: bool) -> Site:
    """Rows of 16 bytes whose addresses come from 8 lanes each."""
    site = Site(ins, d.number, "shared", 8, 2, store=store)
    site.pairs = False
    return site


def _rows(warps: Any, addresses: Array, count: int, site: Site) -> Array:
    """Arena offsets of the 8 * count rows, [n, 8 * count], checked and counted as one access."""
    mask = np.zeros((warps.count, 32), bool)
    mask[:, : 8 * count] = True
    space = warps.machine.spaces["shared"]
    every = True if count == 4 else mask
    offsets = space.offsets(warps, addresses, site, every)
    space.count(offsets, site, every)
    result: Array = offsets[:, : 8 * count]
    return result


def _lanes(count: int) -> tuple[Array, Array]:
    """(row, first column) of the pair of b16 that a lane holds in its register of a matrix."""
    return LANE // 4, 2 * (LANE % 4)


@builder(f"ldmatrix.sync.aligned.m8n8.{_X}{{t:|.trans}}{_SHARED}.b16", sync=True)
def ldmatrix(ins: Instruction, d: Decoder) -> Op:
    """8 x 8 matrices of b16, transposed or not."""
    parts = modifiers(ins)
    count, trans = int(parts[4][1]), "trans" in parts
    site = _site(ins, d, store=False)
    note_unit(d, "shared", 4)
    where = address(ins, ins.operands[1], d)
    targets = d.destinations(ins.operands[0], ins, count)
    row, column = _lanes(count)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        offsets = _rows(warps, where(R), count, site)
        machine.races.matrix_read(warps, offsets, ins)
        _readable(machine, warps, offsets, ins)
        data = machine.shared.view(8, 2)[offsets // 16]
        tiles = np.ascontiguousarray(data).view(np.uint16).reshape(warps.count, count, 8, 8)
        if trans:
            tiles = tiles.transpose(0, 1, 3, 2)
        for index, slot in enumerate(targets):
            pair = tiles[:, index, row, column].astype(np.uint32)
            R[slot][...] = pair | tiles[:, index, row, column + 1].astype(np.uint32) << np.uint32(
                16
            )

    return op


def _readable(machine: Any, warps: Any, offsets: Array, ins: Instruction) -> None:
    if not machine.shared.readable(offsets, 16):
        machine.found(
            "uninitialised-read", "ldmatrix reads rows that nobody wrote.", ins, int(warps.warps[0])
        )


@builder(f"stmatrix.sync.aligned.{_X}.m8n8{{t:|.trans}}{_SHARED}.b16", sync=True)
@builder(f"stmatrix.sync.aligned.m8n8.{_X}{{t:|.trans}}{_SHARED}.b16", sync=True)
def stmatrix(ins: Instruction, d: Decoder) -> Op:
    """8 x 8 matrices of b16, transposed or not."""
    parts = modifiers(ins)
    count = next(int(part[1]) for part in parts if part in ("x1", "x2", "x4"))
    trans = "trans" in parts
    site = _site(ins, d, store=True)
    note_unit(d, "shared", 4)
    where = address(ins, ins.operands[0], d)
    sources = d.sources(ins.operands[1], "b32", ins, count)
    row, column = _lanes(count)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        offsets = _rows(warps, where(R), count, site)
        tiles = np.zeros((warps.count, count, 8, 8), np.uint16)
        for index, slot in enumerate(sources):
            tiles[:, index, row, column] = (R[slot] & 0xFFFF).astype(np.uint16)
            tiles[:, index, row, column + 1] = (R[slot] >> np.uint32(16)).astype(np.uint16)
        if trans:
            tiles = np.ascontiguousarray(tiles.transpose(0, 1, 3, 2))
        machine.races.matrix_write(warps, offsets, ins)
        machine.shared.scatter(offsets, tiles.view(np.uint64).reshape(*offsets.shape, 2), 8, 2)

    return op


@builder("movmatrix.sync.aligned.m8n8.trans.b16", sync=True)
def movmatrix(ins: Instruction, d: Decoder) -> Op:
    """Transposes an 8 x 8 matrix of b16 held in one register a lane."""
    target, source = d.destination(ins.operands[0], ins), d.source(ins.operands[1], "b32", ins)
    row, column = _lanes(1)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        tile = np.zeros((warps.count, 8, 8), np.uint16)
        tile[:, row, column] = (R[source] & 0xFFFF).astype(np.uint16)
        tile[:, row, column + 1] = (R[source] >> np.uint32(16)).astype(np.uint16)
        low, high = tile[:, column, row], tile[:, column + 1, row]
        R[target][...] = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)

    return op


# mma.sync. A fragment's register holds 32 / width values along K, the lowest first; lanes are
# 8 groups of 4: group = lane / 4 is a row (A, C) or a column (B), lane % 4 the place along K.

_WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}


def _operand(values: list[Array], rows: int, width: int) -> Array:
    """Registers [n, 32] of an A (rows 16) or B (rows 8) fragment to codes [n, rows, K]."""
    per = 32 // width
    blocks = rows // 8
    k_blocks = len(values) // blocks
    count = len(values[0])
    result = np.zeros((count, rows, k_blocks * 4 * per), f"u{width // 8}")
    for index, register in enumerate(values):
        block, k_block = index % blocks, index // blocks
        pieces = np.ascontiguousarray(register).view(f"u{width // 8}").reshape(count, 32, per)
        for piece in range(per):
            k = k_block * 4 * per + LANE % 4 * per + piece
            result[:, LANE // 4 + 8 * block, k] = pieces[:, :, piece]
    return result


def _c_places() -> list[tuple[Array, Array]]:
    """(row, column) of the four f32 or s32 of a C fragment of 16 x 8."""
    return [(LANE // 4 + 8 * (i // 2), 2 * (LANE % 4) + i % 2) for i in range(4)]


def _wide_c(values: list[Array]) -> Array:
    result = np.zeros((len(values[0]), 16, 8), np.uint32)
    for (row, column), register in zip(_c_places(), values, strict=True):
        result[:, row, column] = register
    return result


def _half_c(values: list[Array]) -> Array:
    result = np.zeros((len(values[0]), 16, 8), np.uint16)
    for index, (row, column) in enumerate(_c_places()):
        register = values[index // 2] >> np.uint32(16 * (index % 2))
        result[:, row, column] = (register & 0xFFFF).astype(np.uint16)
    return result


def _store_c(R: list[Array], targets: list[int], result: Array) -> None:
    places = _c_places()
    if result.dtype == np.uint16:
        for index, slot in enumerate(targets):
            low, high = (
                result[:, row, column] for row, column in places[2 * index : 2 * index + 2]
            )
            R[slot][...] = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
        return
    for slot, (row, column) in zip(targets, places, strict=True):
        R[slot][...] = result[:, row, column]


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
def mma(ins: Instruction, d: Decoder) -> Op:
    """With the precision of Hopper and Blackwell, whatever the target: C and products aligned to
    the largest and cut 25 bits below it."""
    parts = modifiers(ins)
    d_type, a_type, b_type, c_type = parts[-4:]
    k = int(parts[3].split("k")[1])
    width = _WIDTH[a_type]
    a_count, b_count = 16 * k * width // 1024, 8 * k * width // 1024
    c_count, d_count = (4 if t in ("f32", "s32") else 2 for t in (c_type, d_type))
    targets = d.destinations(ins.operands[0], ins, d_count)
    a, b = (
        d.sources(operand, "b32", ins, count)
        for operand, count in zip(ins.operands[1:3], (a_count, b_count), strict=True)
    )
    c = d.sources(ins.operands[3], "b32", ins, c_count)
    satfinite = "satfinite" in parts

    def op(R: list[Array], m: Any, warps: Any) -> None:
        left = _operand([R[slot] for slot in a], 16, width)
        right = _operand([R[slot] for slot in b], 8, width)
        read = _wide_c if c_count == 4 else _half_c
        addend = read([R[slot] for slot in c])
        results = [
            product(left[i], right[i], addend[i], a_type, b_type, d_type, satfinite)
            for i in range(warps.count)
        ]
        _store_c(R, targets, np.stack(results))

    return op


def product(
    a: Array, b: Array, c: Array, a_type: str, b_type: str, d_type: str, satfinite: bool
) -> Array:
    """One warp's D = A * B^T + C with the precision of mma.sync."""
    if d_type == "s32":
        return tensor.mma_int8(
            a, b, c, a_signed=a_type == "s8", b_signed=b_type == "s8", satfinite=satfinite
        )
    if a_type in ("e4m3", "e5m2"):
        return tensor.mma_sync_fp8(a, b, c, a_type=a_type, b_type=b_type, f16=d_type == "f16")
    function = tensor.mma_f16 if d_type == "f16" else tensor.mma
    return function(a, b, c, a_type=a_type, b_type=b_type, precision=tensor.MMA_SYNC)
