"""Products of a warp: mma.sync and mma.sp.sync."""

from __future__ import annotations

from typing import NamedTuple

from warpsim.arithmetic.matrices import sparse
from warpsim.arithmetic.matrices.fragments import WIDTH
from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate, Operand, Vector
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.tensor import products
from warpsim.machine.tensor.products import Product, Scales, Selection, Sparsity
from warpsim.machine.wave.machine import Op, WarpSet

_DENSE = "mma.sync.aligned"
_SPARSE = "mma.{o:sp::ordered_metadata|sp}.sync.aligned"
_FP8 = "{a:e4m3|e5m2}.{b:e4m3|e5m2}"
_ANY = "{a:e4m3|e5m2|e3m2|e2m3|e2m1}.{b:e4m3|e5m2|e3m2|e2m3|e2m1}"
_RTX_BLACKWELL = "sm_12"
"""Begins the names of targets with an instruction for FP8 that adds as those of f16 do."""


class _Shape(NamedTuple):
    """What an opcode multiplies."""

    k: int
    a_type: str
    b_type: str
    d_type: str

    def registers(self, rows: int, width: int, elements: int) -> int:
        """Of an operand with so many rows of so many elements."""
        return rows * elements * width // 1024


def _shape(d: PtxDecoder) -> _Shape:
    parts = [part for part in d.parts if not part.startswith("ue")]
    k = next(int(part[len("m16n8k") :]) for part in parts if part.startswith("m16n8k"))
    d_type, a_type, b_type, c_type = parts[-4:]
    if c_type != d_type:
        raise d.refuse(
            f"has an accumulator of {c_type} and a result of {d_type}, which must be one"
        )
    return _Shape(k, a_type, b_type, d_type)


def _product(
    d: PtxDecoder, *, sparsity: Sparsity | None = None, scales: Scales | None = None
) -> Op:
    """D, A, B and C are the first operands; what comes after them has been read."""
    shape = _shape(d)
    width = 4 if scales is not None and scales.per_row > 1 else WIDTH[shape.a_type]
    stored = shape.k if sparsity is None else shape.k // 2
    a_count, b_count = shape.registers(16, width, stored), shape.registers(8, width, shape.k)
    c_count = 2 if shape.d_type == "f16" else 4
    target, a, b, c = d.operands[:4]
    product = Product(
        site=d.site,
        a_type=shape.a_type,
        b_type=shape.b_type,
        d_type=shape.d_type,
        d=tuple(d.destinations(target, c_count)),
        a=tuple(d.sources(a, "b32", a_count)),
        b=tuple(d.sources(b, "b32", b_count)),
        c=tuple(d.sources(c, "b32", c_count)),
        saturate="satfinite" in d.parts,
        fused="kind::f8f6f4" in d.parts or d.target.startswith(_RTX_BLACKWELL),
        sparsity=sparsity,
        scales=scales,
    )
    d.multiplies(a_count, b_count, c_count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        products.multiply(product, R, warps)

    return op


@builder(f"{_DENSE}.{{s:m16n8k8|m16n8k16}}.row.col.{{d:f32|f16}}.f16.f16.{{c:f32|f16}}", sync=True)
@builder(f"{_DENSE}.{{s:m16n8k8|m16n8k16}}.row.col.f32.bf16.bf16.f32", sync=True)
@builder(f"{_DENSE}.{{s:m16n8k4|m16n8k8}}.row.col.f32.tf32.tf32.f32", sync=True)
@builder(f"{_DENSE}.{{s:m16n8k16|m16n8k32}}.row.col.{{d:f32|f16}}.{_FP8}.{{c:f32|f16}}", sync=True)
@builder(
    f"{_DENSE}.{{s:m16n8k16|m16n8k32}}.row.col{{x:|.satfinite}}.s32.{{a:s8|u8}}.{{b:s8|u8}}.s32",
    sync=True,
)
@builder(
    f"{_DENSE}.{{s:m16n8k32|m16n8k64}}.row.col{{x:|.satfinite}}.s32.{{a:s4|u4}}.{{b:s4|u4}}.s32",
    sync=True,
)
def mma(d: PtxDecoder) -> Op:
    """Uses the precision of Hopper and Blackwell for any target: C and the products are aligned
    to the largest and truncated 25 bits below it. FP8 is widened to f16, as ptxas does for sm_90
    and sm_100; for sm_120 it is multiplied as it is. C and D have one type."""
    return _product(d)


@builder(f"{_DENSE}.m16n8k32.row.col.kind::f8f6f4.{{d:f32|f16}}.{_ANY}.{{c:f32|f16}}", sync=True)
def mma_f8f6f4(d: PtxDecoder) -> Op:
    """Numbers of six bits in the low bits of a byte, of four in its middle. The sum is that of the
    other types."""
    return _product(d)


@builder(
    f"{_SPARSE}.{{s:m16n8k16|m16n8k32}}.row.col.{{d:f32|f16}}.f16.f16.{{c:f32|f16}}", sync=True
)
@builder(f"{_SPARSE}.{{s:m16n8k16|m16n8k32}}.row.col.f32.bf16.bf16.f32", sync=True)
@builder(f"{_SPARSE}.{{s:m16n8k8|m16n8k16}}.row.col.f32.tf32.tf32.f32", sync=True)
@builder(f"{_SPARSE}.m16n8k64.row.col.f32.{_FP8}.f32", sync=True)
@builder(
    f"{_SPARSE}.{{s:m16n8k32|m16n8k64}}.row.col{{x:|.satfinite}}.s32.{{a:s8|u8}}.{{b:s8|u8}}.s32",
    sync=True,
)
@builder(
    f"{_SPARSE}.{{s:m16n8k64|m16n8k128}}.row.col{{x:|.satfinite}}.s32.{{a:s4|u4}}.{{b:s4|u4}}.s32",
    sync=True,
)
@builder(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.{d:f32|f16}."
    f"{_ANY}.{{c:f32|f16}}",
    sync=True,
)
def mma_sparse(d: PtxDecoder) -> Op:
    """The sum is that of the stored elements, as of a dense product of half the depth. Metadata for
    which the ISA leaves the behaviour undefined is a finding. Block-scaled forms are rejected."""
    _, _, _, _, metadata, selector = d.operands
    ordered = "sp::ordered_metadata" in d.parts
    shape = _shape(d)
    lanes = sparse.groups(shape.k // 2, WIDTH[shape.a_type]) // 4
    return _product(d, sparsity=sparsity(d, metadata, selector, ordered, lanes))


def sparsity(
    d: PtxDecoder, metadata: Operand, selector: Operand, ordered: bool, lanes: int
) -> Sparsity:
    """Of an instruction for which so many of each four lanes bring metadata."""
    chosen = d.constant(selector)
    if not 0 <= chosen < 4 // lanes:
        raise d.refuse(f"has {chosen} as its sparsity selector, for which it has no meaning")
    return Sparsity(d.source(metadata, "b32"), chosen, ordered)


@builder(
    f"{_DENSE}.m16n8k32.row.col.kind::mxf8f6f4.block_scale{{v:|.scale_vec::1X}}.f32.{_ANY}.f32.ue8m0",
    sync=True,
)
@builder(
    f"{_DENSE}.m16n8k64.row.col.kind::mxf4.block_scale{{v:|.scale_vec::2X}}.f32.e2m1.e2m1.f32.ue8m0",
    sync=True,
)
@builder(
    f"{_DENSE}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    sync=True,
)
@builder(
    f"{_DENSE}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32."
    "{s:ue8m0|ue4m3}",
    sync=True,
)
def mma_scaled(d: PtxDecoder) -> Op:
    """For sm_120a. The sum is that of tcgen05's block-scaled products, by MMA-Sim's model; no GPU
    of this kind has been compared."""
    *_, a, a_selector, b, b_selector = d.operands[:8]
    per_row = 4 if "scale_vec::4X" in d.parts else 1 if "kind::mxf8f6f4" in d.parts else 2
    first, second = _selector(d, a_selector, per_row, 2), _selector(d, b_selector, per_row, 4)
    scales = Scales(
        kind=d.parts[-1],
        per_row=per_row,
        a=d.source(a, "b32"),
        b=d.source(b, "b32"),
        selections=lambda R: (_selection(R, first), _selection(R, second)),
    )
    return _product(d, scales=scales)


def _selector(d: PtxDecoder, operand: Operand, per_row: int, lanes: int) -> tuple[int, int]:
    """The slots of a byte and of a thread, which choose factors: one of `lanes`."""
    if not isinstance(operand, Vector) or len(operand.items) != 2:
        raise d.refuse("has no {byte-id, thread-id} where one is expected")
    byte, lane = operand.items
    valid = (range(0, 4, per_row), range(lanes))
    for item, values in zip((byte, lane), valid, strict=True):
        if isinstance(item, Immediate) and item.value not in values:
            raise d.refuse(f"selects scale factors by {item.value}, for which it has no meaning")
    return d.source(byte, "u16"), d.source(lane, "u16")


def _selection(R: list[Array], slots: tuple[int, int]) -> Selection:
    byte, lane = slots
    return Selection(R[byte], R[lane])
