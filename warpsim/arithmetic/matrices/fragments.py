"""How the registers of a warp hold the matrices of mma.sync.

A fragment's register holds 32 / width values along K, the lowest first; lanes are 8 groups of 4:
group = lane / 4 is a row (A, C) or a column (B), lane % 4 the place along K.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic import narrow, native, tensor
from warpsim.arithmetic.formats import Bits

Places: TypeAlias = npt.NDArray[np.intp]

LANE = np.arange(32)
WIDTH = {
    "f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
    "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8,
}  # fmt: skip
"""Bits that an element takes in a register."""


def operand(values: Sequence[Bits], rows: int, width: int) -> Bits:
    """Registers [n, 32] of an A (rows 16) or B (rows 8) fragment to codes [n, rows, K]."""
    words = np.stack(values, axis=1)
    codes = words.reshape(len(words), -1).view(f"u{width // 8}")
    return codes.take(_places(len(values), rows, 32 // width), axis=1).reshape(len(words), rows, -1)


def codes(values: Sequence[Bits], rows: int, kind: str, width: int) -> Bits:
    """The same as numbers of at least a byte, of a type that takes `width` bits: those of four bits
    as s8 and u8, E2M1 in the low bits."""
    if width >= 8:
        code = operand(values, rows, width)
        return narrow.of_containers(code, 4) if kind == "e2m1" else code
    words = np.stack(values, axis=1)
    nibble = narrow.of_nibbles(words.reshape(len(words), -1).view(np.uint8), kind)
    code = nibble.take(_places(len(values), rows, 32 // width), axis=1)
    return code.reshape(len(words), rows, -1)


@functools.cache
def _places(count: int, rows: int, per: int) -> Places:
    """Of each code [rows, K], flat, among those of `count` registers by register, lane, piece."""
    blocks = rows // 8
    places = np.zeros((rows, count // blocks * 4 * per), np.intp)
    for index in range(count):
        block, k_block = index % blocks, index // blocks
        for piece in range(per):
            k = k_block * 4 * per + LANE % 4 * per + piece
            places[LANE // 4 + 8 * block, k] = (index * 32 + LANE) * per + piece
    return places.ravel()


C_PLACES = [(LANE // 4 + 8 * (i // 2), 2 * (LANE % 4) + i % 2) for i in range(4)]
"""(row, column) of the four f32 or s32 of a C fragment of 16 x 8."""


def accumulator(values: Sequence[Bits]) -> Bits:
    """Four registers [n, 32] of 32-bit values, or two of pairs of f16, to C [n, 16, 8]."""
    half = len(values) == 2
    result = np.zeros((len(values[0]), 16, 8), np.uint16 if half else np.uint32)
    for index, (row, column) in enumerate(C_PLACES):
        if half:
            register = values[index // 2] >> np.uint32(16 * (index % 2)) & np.uint32(0xFFFF)
        else:
            register = values[index]
        result[:, row, column] = register
    return result


def registers(result: Bits) -> list[Bits]:
    """D [n, 16, 8] to the registers [n, 32] of its fragment."""
    values = [result[:, row, column] for row, column in C_PLACES]
    if result.dtype != np.uint16:
        return values
    return [_pair(*values[:2]), _pair(*values[2:])]


def _pair(low: Bits, high: Bits) -> Bits:
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def pairs(tiles: Bits) -> Bits:
    """8 x 8 matrices of b16, [..., 8, 8], to the register of each lane, [..., 32]."""
    row, column = LANE // 4, 2 * (LANE % 4)
    return _pair(tiles[..., row, column], tiles[..., row, column + 1])


def tiles(values: Bits) -> Bits:
    """The registers of pairs(), [..., 32], to 8 x 8 matrices of b16."""
    row, column = LANE // 4, 2 * (LANE % 4)
    result = np.zeros((*values.shape[:-1], 8, 8), np.uint16)
    result[..., row, column] = values & np.uint32(0xFFFF)
    result[..., row, column + 1] = values >> np.uint32(16)
    return result


def products(
    a: Bits,
    b: Bits,
    c: Bits,
    a_type: str,
    b_type: str,
    d_type: str,
    satfinite: bool,
    *,
    fused: bool = False,
) -> Bits:
    """product() of each warp: [n, M, K], [n, N, K], [n, M, N]."""
    if d_type == "f32" and (fused or WIDTH[a_type] == 16):
        fraction, bits = tensor.MMA_SYNC.fraction_bits, tensor.MMA_SYNC.output_bits
        result = native.mma(a, b, c, a_type, b_type, fraction, bits)
        if result is not None:
            return result
    types = a_type, b_type, d_type
    warps = zip(a, b, c, strict=True)
    return np.stack([product(*warp, *types, satfinite, fused=fused) for warp in warps])


def product(
    a: Bits,
    b: Bits,
    c: Bits,
    a_type: str,
    b_type: str,
    d_type: str,
    satfinite: bool,
    *,
    fused: bool = False,
) -> Bits:
    """One warp's D = A * B^T + C with the precision of mma.sync; of FP8, as an instruction of its
    own makes it if `fused`, else as sm_90 and sm_100, which have none."""
    if d_type == "s32":
        signs = {"a_signed": a_type[0] == "s", "b_signed": b_type[0] == "s"}
        return tensor.mma_int8(a, b, c, **signs, satfinite=satfinite)
    if WIDTH[a_type] == 8 and not fused:
        return tensor.mma_sync_fp8(a, b, c, a_type=a_type, b_type=b_type, f16=d_type == "f16")
    function = tensor.mma_f16 if d_type == "f16" else tensor.mma
    return function(a, b, c, a_type=a_type, b_type=b_type, precision=tensor.MMA_SYNC)
