"""Matrices in the registers of a warp: products, and their way to and from shared memory."""

from __future__ import annotations

import re

import numpy as np

from kernelexp.emulator.arithmetic import fragments
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.machine import Op, WarpSet
from kernelexp.emulator.machine.matrices import MatrixAccess
from kernelexp.emulator.sass.decoder import Decoder
from kernelexp.emulator.sass.registry import covers
from kernelexp.emulator.sass.syntax import Operand


def _count(d: Decoder) -> int:
    return next((int(each) for each in d.modifiers if each in ("2", "4")), 1)


@covers("LDSM.16.{:M88|MT88}{:|.2|.4}")
def ldsm(d: Decoder) -> Op:
    """1, 2 or 4 matrices of 8 x 8, transposed with MT88."""
    target, address = d.take(d.operands, 2)
    d.note_unit("shared", 4)
    count = _count(d)
    matrices = MatrixAccess(d.site, count, "MT88" in d.modifiers, store=False)
    where, targets = d.shared_address(address), d.to_words(target, count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = matrices.load(warps, where(R))
        for index, slot in enumerate(targets):
            R[slot][...] = values[:, index]

    return d.by_whole_warps(op)


@covers("STSM.16.{:M88|MT88}{:|.2|.4}")
def stsm(d: Decoder) -> Op:
    """1, 2 or 4 matrices of 8 x 8, transposed with MT88."""
    address, source = d.take(d.operands, 2)
    d.note_unit("shared", 4)
    count = _count(d)
    matrices = MatrixAccess(d.site, count, "MT88" in d.modifiers, store=True)
    where, sources = d.shared_address(address), d.words(d.unsigned(source), count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        matrices.store(warps, where(R), np.stack([R[slot] for slot in sources], axis=1))

    return d.by_whole_warps(op)


@covers("MOVM.16.MT88")
def movm(d: Decoder) -> Op:
    """Transposes an 8 x 8 matrix of b16."""
    target, source = d.take(d.operands, 2)
    slot, read = d.to(target), d.bits(source)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        R[slot][...] = fragments.pairs(fragments.tiles(read(R)).swapaxes(1, 2))

    return d.by_whole_warps(op)


@covers(
    "HMMA.{:1688|16816}.{:F32|F16}", "HMMA.{:1688|16816}.F32.BF16", "HMMA.{:1684|1688}.F32.TF32"
)
@covers("IMMA.{:16816|16832}.{:S8|U8}.{:S8|U8}{:|.SAT}")
def mma(d: Decoder) -> Op:
    """With the precision of Hopper and Blackwell, whatever the architecture: C and the products are
    aligned to the largest and truncated 25 bits below it."""
    target, left, right, addend = d.take(d.operands, 4)
    names = d.instruction.modifiers
    shape = re.fullmatch(r"168(\d+)", names[0])
    assert shape is not None
    k = int(shape[1])
    if d.instruction.base == "IMMA":
        a_type, b_type, d_type = names[1].lower(), names[2].lower(), "s32"
    else:
        a_type = b_type = next((t for t in ("bf16", "tf32") if t.upper() in names), "f16")
        d_type = names[1].lower()
    return _product(d, (target, left, right, addend), k, (a_type, b_type, d_type))


def _product(d: Decoder, operands: tuple[Operand, ...], k: int, types: tuple[str, str, str]) -> Op:
    target, left, right, addend = operands
    a_type, b_type, d_type = types
    width = fragments.WIDTH[a_type]
    c_count = 2 if d_type == "f16" else 4
    targets = d.to_words(target, c_count)
    a = d.words(d.matrix(left, "ROW"), 16 * k * width // 1024)
    b = d.words(d.matrix(right, "COL"), 8 * k * width // 1024)
    c = d.words(d.matrix(addend, ""), c_count)
    saturates = "SAT" in d.modifiers

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        rows = fragments.operand([R[slot] for slot in a], 16, width)
        columns = fragments.operand([R[slot] for slot in b], 8, width)
        sums = fragments.accumulator([R[slot] for slot in c])
        results = [
            fragments.product(rows[i], columns[i], sums[i], a_type, b_type, d_type, saturates)
            for i in range(warps.count)
        ]
        for slot, value in zip(targets, fragments.registers(np.stack(results)), strict=True):
            R[slot][...] = value

    return d.by_whole_warps(op)
