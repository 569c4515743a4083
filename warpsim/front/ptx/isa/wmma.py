"""wmma: PTX leaves the fragment layout open; this one is that of mma.m16n8k16.

ptxas makes the fragments so (two mma of 16 x 8 for a tile of 16 x 16), and a program can't tell.
"""

from __future__ import annotations

import re

import numpy as np

from warpsim.arithmetic.matrices.fragments import LANE, WIDTH, product
from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate, Operand, Vector
from warpsim.front.ptx.types import width_of
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.wave.machine import Op, WarpSet

_SHAPE = "{s:m16n16k16|m8n32k16|m32n8k16}"
_SPACE = "{p:|.global|.shared|.shared::cta}"
_LAYOUT = "{l:row|col}"


def _extent(matrix: str, shape: str) -> tuple[int, int]:
    m, n, k = (int(side) for side in re.split("[mnk]", shape)[1:])
    return {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[matrix]


def _places(matrix: str, shape: str, width: int, registers: int) -> tuple[Array, Array]:
    """(row, column) of each element [registers, elements per register, 32].

    Elements are dealt to the lanes in pairs or quadruples along a row; every load, mma and store of
    the same matrix deals alike. f16 operands have each element twice where 8 registers hold 256.
    """
    rows, columns = _extent(matrix, shape)
    per = 32 // width
    index = np.arange(registers)[:, None, None] * 32 * per + np.arange(per)[None, :, None]
    index = (index + LANE[None, None, :] * per) % (rows * columns)
    return index // columns, index % columns


def _count(operand: Operand) -> int:
    """Registers of a fragment."""
    return len(operand.items) if isinstance(operand, Vector) else 1


class _Tile:
    """One load or store: which addresses the lanes' elements have."""

    def __init__(self, d: PtxDecoder, store: bool) -> None:
        parts = d.parts
        self.matrix, layout, shape = parts[2], parts[5], parts[6]
        self.width = width_of(parts[-1])
        count = _count(d.operands[1 if store else 0])
        self.row, self.column = _places(self.matrix, shape, self.width, count)
        if layout == "col":
            self.line, self.within = self.column, self.row
        else:
            self.line, self.within = self.row, self.column
        space = "shared" if any(part.startswith("shared") for part in parts) else "generic"
        self.space = "global" if "global" in parts else space
        self.access = AccessKind(d.site, self.width // 8, 1, store=store)
        d.note_unit(self.space, self.width // 8)
        rows, columns = _extent(self.matrix, shape)
        default = Immediate(rows if layout == "col" else columns)
        pointer, stride = (0, 2) if store else (1, 2)
        self.where = d.address(d.operands[pointer])
        operand = d.operands[stride] if len(d.operands) > stride else default
        self.stride = d.source(operand, "u32")

    def addresses(self, R: list[Array], register: int, element: int) -> Array:
        step = R[self.stride].astype(np.int64) * self.line[register, element]
        offset = (step + self.within[register, element]) * (self.width // 8)
        base = self.where(R)
        return base.astype(np.uint64) + offset.astype(np.uint64)


@builder(f"wmma.load.{{x:a|b}}.sync.aligned.{_LAYOUT}.m16n16k8{_SPACE}.tf32", sync=True)
@builder(f"wmma.load.c.sync.aligned.{_LAYOUT}.m16n16k8{_SPACE}.f32", sync=True)
@builder(
    f"wmma.load.{{x:a|b|c}}.sync.aligned.{_LAYOUT}.{_SHAPE}{_SPACE}.{{t:f16|bf16|f32|s32|s8|u8}}",
    sync=True,
)
def load(d: PtxDecoder) -> Op:
    """Element by element: its wavefronts differ from those of the LDSM that ptxas emits."""
    tile = _Tile(d, store=False)
    targets = d.destinations(d.operands[0], _count(d.operands[0]))

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        space = warps.machine.spaces[tile.space]
        for register, slot in enumerate(targets):
            at = (tile.addresses(R, register, element) for element in range(32 // tile.width))
            R[slot][...] = _word([space.load(warps, a, tile.access, True) for a in at], tile.width)

    return op


@builder(f"wmma.store.d.sync.aligned.{_LAYOUT}.m16n16k8{_SPACE}.f32", sync=True)
@builder(f"wmma.store.d.sync.aligned.{_LAYOUT}.{_SHAPE}{_SPACE}.{{t:f16|f32|s32}}", sync=True)
def store(d: PtxDecoder) -> Op:
    """Element by element, like wmma.load."""
    tile = _Tile(d, store=True)
    sources = d.sources(d.operands[1], "b32", _count(d.operands[1]))

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        space = warps.machine.spaces[tile.space]
        narrow = np.dtype(f"u{tile.width // 8}").type
        for register, slot in enumerate(sources):
            for element in range(32 // tile.width):
                values = (R[slot] >> np.uint32(tile.width * element)).astype(narrow)
                at = tile.addresses(R, register, element)
                space.store(warps, at, values, tile.access, True)

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
@builder(
    "wmma.mma.sync.aligned.{a:row|col}.{b:row|col}.m16n16k8.f32.tf32.tf32.f32",
    sync=True,
)
def mma(d: PtxDecoder) -> Op:
    """K = 16 in one step, like the two HMMA.16816 or the IMMA that ptxas emits."""
    parts = [part for part in d.parts if part != "satfinite"]
    shape, rest = parts[6], parts[7:]
    d_type, c_type = rest[0], rest[-1]
    a_type, b_type = (rest[1], rest[2]) if len(rest) == 4 else ("f16", "f16")
    width = WIDTH[a_type]
    groups = [d.sources(operand, "b32", _count(operand)) for operand in d.operands[1:4]]
    targets = d.destinations(d.operands[0], _count(d.operands[0]))
    c_width, d_width = (16 if kind == "f16" else 32 for kind in (c_type, d_type))
    places = [
        _places(matrix, shape, bits, len(slots))
        for matrix, bits, slots in zip("abc", (width, width, c_width), groups, strict=True)
    ]
    out = _places("d", shape, d_width, len(targets))
    satfinite = "satfinite" in d.site.opcode

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        a, b, c = (
            _gather(R, slots, place, _extent(matrix, shape), bits)
            for slots, place, matrix, bits in zip(
                groups, places, "abc", (width, width, c_width), strict=True
            )
        )
        products = [
            product(a[n], np.ascontiguousarray(b[n].T), c[n], a_type, b_type, d_type, satfinite)
            for n in range(warps.count)
        ]
        _scatter(R, targets, out, np.stack(products), d_width)

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
    R: list[Array], slots: list[int], places: tuple[Array, Array], results: Array, width: int
) -> None:
    """Matrices [n, rows, columns] to the fragments of all warps."""
    row, column = places
    for register, slot in enumerate(slots):
        elements = zip(row[register], column[register], strict=True)
        R[slot][...] = _word([results[:, y, x] for y, x in elements], width)


def _word(elements: list[Array], width: int) -> Array:
    """Elements of `width` bits as one register, the first one lowest."""
    shifted = [e.astype(np.uint32) << np.uint32(width * i) for i, e in enumerate(elements)]
    return np.bitwise_or.reduce(shifted)
