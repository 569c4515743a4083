"""wmma: warp matrices whose fragments PTX leaves open; here they are those of mma.m16n8k16.

ptxas makes the fragments so (two mma of 16 x 8 for a tile of 16 x 16), and a program can't tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.matrix import _WIDTH, LANE, product
from kernelexp.emulator.isa.memory import address, note_unit
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine.spaces import Site
from kernelexp.emulator.ptx.syntax import Immediate, Instruction
from kernelexp.emulator.slots import Array

_SHAPE = "{s:m16n16k16|m8n32k16|m32n8k16}"
_SPACE = "{p:|.global|.shared|.shared::cta}"
_LAYOUT = "{l:row|col}"


def _sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _extent(matrix: str, shape: str) -> tuple[int, int]:
    m, n, k = _sizes(shape)
    return {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[matrix]


def _places(matrix: str, shape: str, width: int, registers: int) -> tuple[Array, Array]:
    """(row, column) of each element [registers, elements a register, 32].

    Elements are dealt to the lanes in pairs or quadruples along a row; every load, mma and store of
    the same matrix deals alike. f16 operands have each element twice where 8 registers hold 256.
    """
    rows, columns = _extent(matrix, shape)
    per = 32 // width
    index = np.arange(registers)[:, None, None] * 32 * per + np.arange(per)[None, :, None]
    index = (index + LANE[None, None, :] * per) % (rows * columns)
    return index // columns, index % columns


def _registers(ins: Instruction) -> int:
    vector = ins.operands[0] if ".load" in ins.opcode else ins.operands[1]
    return len(vector.items)  # type: ignore[union-attr]


class _Tile:
    """One load or store: which addresses the lanes' elements have."""

    def __init__(self, ins: Instruction, d: Decoder, store: bool) -> None:
        parts = modifiers(ins)
        self.matrix, layout, shape = parts[2], parts[5], parts[6]
        self.kind = parts[-1]
        self.width = {"f16": 16, "bf16": 16, "f32": 32, "s32": 32, "tf32": 32, "s8": 8, "u8": 8}[
            self.kind
        ]
        count = _registers(ins)
        self.row, self.column = _places(self.matrix, shape, self.width, count)
        if layout == "col":
            self.line, self.within = self.column, self.row
        else:
            self.line, self.within = self.row, self.column
        space = "shared" if any(part.startswith("shared") for part in parts) else "generic"
        self.space = "global" if "global" in parts else space
        self.site = Site(ins, d.number, self.space, self.width // 8, 1, store=store)
        note_unit(d, self.space, self.width // 8)
        rows, columns = _extent(self.matrix, shape)
        default = Immediate(rows if layout == "col" else columns)
        pointer, stride = (0, 2) if store else (1, 2)
        self.where = address(ins, ins.operands[pointer], d)
        operand = ins.operands[stride] if len(ins.operands) > stride else default
        self.stride = d.source(operand, "u32", ins)

    def addresses(self, R: list[Array], register: int, element: int) -> Array:
        step = R[self.stride].astype(np.int64) * self.line[register, element]
        offset = (step + self.within[register, element]) * (self.width // 8)
        base = self.where(R)
        result: Array = base.astype(np.uint64) + offset.astype(np.uint64)
        return result


@builder(
    f"wmma.load.{{x:a|b|c}}.sync.aligned.{_LAYOUT}.{_SHAPE}{_SPACE}.{{t:f16|bf16|f32|s32|s8|u8}}",
    sync=True,
)
def load(ins: Instruction, d: Decoder) -> Op:
    """Element by element: its wavefronts are not those of the LDSM that ptxas makes."""
    tile = _Tile(ins, d, store=False)
    targets = d.destinations(ins.operands[0], ins, _registers(ins))

    def op(R: list[Array], m: Any, warps: Any) -> None:
        space = warps.machine.spaces[tile.space]
        for register, slot in enumerate(targets):
            word = np.zeros((warps.count, 32), np.uint32)
            for element in range(32 // tile.width):
                values = space.load(warps, tile.addresses(R, register, element), tile.site, True)
                word |= values.astype(np.uint32) << np.uint32(tile.width * element)
            R[slot][...] = word

    return op


@builder(f"wmma.store.d.sync.aligned.{_LAYOUT}.{_SHAPE}{_SPACE}.{{t:f16|f32|s32}}", sync=True)
def store(ins: Instruction, d: Decoder) -> Op:
    """Element by element, like wmma.load."""
    tile = _Tile(ins, d, store=True)
    sources = d.sources(ins.operands[1], "b32", ins, _registers(ins))

    def op(R: list[Array], m: Any, warps: Any) -> None:
        space = warps.machine.spaces[tile.space]
        narrow = np.dtype(f"u{tile.width // 8}").type
        for register, slot in enumerate(sources):
            for element in range(32 // tile.width):
                values = (R[slot] >> np.uint32(tile.width * element)).astype(narrow)
                at = tile.addresses(R, register, element)
                space.store(warps, at, values, tile.site, True)

    return op


@builder(
    f"wmma.mma.sync.aligned.{{a:row|col}}.{{b:row|col}}.{_SHAPE}.{{d:f16|f32}}.{{c:f16|f32}}",
    sync=True,
)
@builder(f"wmma.mma.sync.aligned.{{a:row|col}}.{{b:row|col}}.{_SHAPE}.f32.bf16.bf16.f32", sync=True)
@builder(
    f"wmma.mma.sync.aligned.{{a:row|col}}.{{b:row|col}}.{_SHAPE}.s32.{{x:s8|u8}}.{{y:s8|u8}}.s32{{f:|.satfinite}}",
    sync=True,
)
def mma(ins: Instruction, d: Decoder) -> Op:
    """K = 16 in one step, as the two HMMA.16816 or IMMA that ptxas makes of it."""
    parts = [part for part in modifiers(ins) if part != "satfinite"]
    shape, rest = parts[6], parts[7:]
    d_type, c_type = rest[0], rest[-1]
    a_type, b_type = (rest[1], rest[2]) if len(rest) == 4 else ("f16", "f16")
    width = _WIDTH[a_type]
    groups = [
        d.sources(operand, "b32", ins, len(operand.items))  # type: ignore[union-attr]
        for operand in ins.operands[1:4]
    ]
    targets = d.destinations(ins.operands[0], ins, len(ins.operands[0].items))  # type: ignore[union-attr]
    c_width, d_width = (16 if kind == "f16" else 32 for kind in (c_type, d_type))
    places = [
        _places(matrix, shape, bits, len(slots))
        for matrix, bits, slots in zip("abc", (width, width, c_width), groups, strict=True)
    ]
    out = _places("d", shape, d_width, len(targets))
    satfinite = "satfinite" in ins.opcode

    def op(R: list[Array], m: Any, warps: Any) -> None:
        a, b, c = (
            _gather(R, slots, place, _extent(matrix, shape), bits)
            for slots, place, matrix, bits in zip(
                groups, places, "abc", (width, width, c_width), strict=True
            )
        )
        for row in range(warps.count):
            right = np.ascontiguousarray(b[row].T)
            result = product(a[row], right, c[row], a_type, b_type, d_type, satfinite)
            _scatter(R, targets, out, result, d_width, row)

    return op


def _gather(
    R: list[Array],
    slots: list[int],
    places: tuple[Array, Array],
    extent: tuple[int, int],
    width: int,
) -> Array:
    """Fragments of all warps to matrices [n, rows, columns]."""
    dtype = np.dtype(f"u{width // 8}")
    result = np.zeros((len(R[slots[0]]), *extent), dtype)
    row, column = places
    for register, slot in enumerate(slots):
        for element in range(32 // width):
            values = (R[slot] >> np.uint32(width * element)).astype(dtype)
            result[:, row[register, element], column[register, element]] = values
    return result


def _scatter(
    R: list[Array], slots: list[int], places: tuple[Array, Array], result: Array, width: int, n: int
) -> None:
    row, column = places
    for register, slot in enumerate(slots):
        word = np.zeros(32, np.uint32)
        for element in range(32 // width):
            values = result[row[register, element], column[register, element]]
            word |= values.astype(np.uint32) << np.uint32(width * element)
        R[slot][n] = word
