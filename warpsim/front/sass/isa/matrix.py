"""Matrices in the registers of a warp: products, and their way to and from shared memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from warpsim.arithmetic.matrices import fragments
from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import Operand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import MEMORIES, CompiledForm, Formed
from warpsim.machine.tensor import products
from warpsim.machine.tensor.matrices import MatrixAccess
from warpsim.machine.tensor.products import Product, Scales, Selection, Sparsity
from warpsim.machine.wave.machine import Op, WarpSet

_KINDS = frozenset(fragments.WIDTH)
_NARROW = "{:E4M3|E5M2|E3M2|E2M3|E2M1}"


def _count(d: SassDecoder) -> int:
    return next((int(modifier) for modifier in d.modifiers if modifier in ("2", "4")), 1)


@covers("LDSM.16.{:M88|MT88}{:|.2|.4}")
def ldsm(d: SassDecoder) -> Op:
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

    return _formed(d, op, "ldmatrix", address, targets, matrices)


def _formed(
    d: SassDecoder, op: Op, name: str, address: Operand, words: list[int], matrices: MatrixAccess
) -> Op:
    """An access by whole warps, with its compiled form if one register has the address."""
    op, base = d.by_whole_warps(op), d.shared_base(address)
    if base is None:
        return op
    numbers = MEMORIES["shared"], 4, matrices.count, matrices.transposed, True
    return Formed(op, CompiledForm(name, (base[0], *words), numbers, base[1]))


@covers("STSM.16.{:M88|MT88}{:|.2|.4}")
def stsm(d: SassDecoder) -> Op:
    """1, 2 or 4 matrices of 8 x 8, transposed with MT88."""
    address, source = d.take(d.operands, 2)
    d.note_unit("shared", 4)
    count = _count(d)
    matrices = MatrixAccess(d.site, count, "MT88" in d.modifiers, store=True)
    where, sources = d.shared_address(address), d.words(d.unsigned(source), count)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        matrices.store(warps, where(R), np.stack([R[slot] for slot in sources], axis=1))

    return _formed(d, op, "stmatrix", address, sources, matrices)


@covers("MOVM.16.MT88")
def movm(d: SassDecoder) -> Op:
    """Transposes an 8 x 8 matrix of b16."""
    target, source = d.take(d.operands, 2)
    slot, read = d.to(target), d.bits(source)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        R[slot][...] = fragments.pairs(fragments.tiles(read(R)).swapaxes(1, 2))

    return d.by_whole_warps(op)


@covers(
    "HMMA.{:1688|16816}.{:F32|F16}", "HMMA.{:1688|16816}.F32.BF16", "HMMA.{:1684|1688}.F32.TF32"
)
@covers(
    "IMMA.{:16816|16832}.{:S8|U8}.{:S8|U8}{:|.SAT}", "IMMA.{:16832|16864}.{:S4|U4}.{:S4|U4}{:|.SAT}"
)
def mma(d: SassDecoder) -> Op:
    """With the precision of Hopper and Blackwell, whatever the architecture: C and the products are
    aligned to the largest and truncated 25 bits below it."""
    return _product(d, d.take(d.operands, 4))


@covers(
    "HMMA.SP.{:16816|16832}.{:F32|F16}",
    "HMMA.SP.{:16816|16832}.F32.BF16",
    "HMMA.SP.{:1688|16816}.F32.TF32",
)
@covers(
    "IMMA.SP.{:16832|16864}.{:S8|U8}.{:S8|U8}{:|.SAT}",
    "IMMA.SP.{:16864|168128}.{:S4|U4}.{:S4|U4}{:|.SAT}",
)
def mma_sparse(d: SassDecoder) -> Op:
    """The sum is that of the stored elements, which metadata places; a literal chooses the lanes
    that have it."""
    *matrices, metadata, selector = d.take(d.operands, 6)
    (slot,) = d.words(d.unsigned(metadata), 1)
    return _product(d, matrices, sparsity=Sparsity(slot, d.constant(selector)))


@covers(
    f"QMMA.16832.{{:F32|F16}}.{_NARROW}.{_NARROW}",
    f"QMMA.SP.16864.{{:F32|F16}}.{_NARROW}.{_NARROW}",
)
def mma_narrow(d: SassDecoder) -> Op:
    """Of sm_120: FP8 and narrower numbers, a byte each; the sum is that of HMMA."""
    return mma_sparse(d) if "SP" in d.modifiers else mma(d)


@covers(f"QMMA.SF.16832.F32.{_NARROW}.{_NARROW}.E8")
@covers("OMMA.SF.16864.F32.E2M1.E2M1.E8", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X")
def mma_scaled(d: SassDecoder) -> Op:
    """Of sm_120: a register each with scale factors of A and of B, and one of the warp that selects
    them: byte and thread of A's in bits 0 and 2, of B's in bits 3 and 5."""
    *matrices, a, b, selector = d.take(d.operands, 7)
    slots = [d.words(d.unsigned(source), 1)[0] for source in (a, b, selector)]
    per_row = 1 if d.instruction.base == "QMMA" else 4 if "4X" in d.modifiers else 2
    scales = Scales(
        kind="ue4m3" if "UE4M3" in d.modifiers else "ue8m0",
        per_row=per_row,
        a=slots[0],
        b=slots[1],
        selections=lambda R: _selections(R[slots[2]]),
    )
    return _product(d, matrices, scales=scales)


def _selections(word: Array) -> tuple[Selection, Selection]:
    """Of A's and of B's factors."""
    a_byte, a_lane, b_byte, b_lane = (
        word >> np.uint32(first) & np.uint32(mask)
        for first, mask in ((0, 3), (2, 1), (3, 3), (5, 3))
    )
    return Selection(a_byte, a_lane), Selection(b_byte, b_lane)


def _product(
    d: SassDecoder,
    operands: Sequence[Operand],
    *,
    sparsity: Sparsity | None = None,
    scales: Scales | None = None,
) -> Op:
    target, left, right, addend = operands
    d_type, a_type, b_type = _types(d)
    k = _depth(d)
    width = 4 if scales is not None and scales.per_row > 1 else fragments.WIDTH[a_type]
    c_count = 2 if d_type == "f16" else 4
    stored = k if sparsity is None else k // 2
    product = Product(
        site=d.site,
        a_type=a_type,
        b_type=b_type,
        d_type=d_type,
        d=tuple(d.to_words(target, c_count)),
        a=tuple(d.words(d.matrix(left, "ROW"), 16 * stored * width // 1024)),
        b=tuple(d.words(d.matrix(right, "COL"), 8 * k * width // 1024)),
        c=tuple(d.words(d.matrix(addend, ""), c_count)),
        saturate="SAT" in d.modifiers,
        fused=True,
        sparsity=sparsity,
        scales=scales,
    )
    d.products[d.instruction.number] = product.a, product.b, product.c

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        products.multiply(product, R, warps)

    return d.by_whole_warps(op)


def _depth(d: SassDecoder) -> int:
    """K, from the shape 16 x 8 x K."""
    shapes = (re.fullmatch(r"168(\d+)", name) for name in d.instruction.modifiers)
    return next(int(shape[1]) for shape in shapes if shape is not None)


def _types(d: SassDecoder) -> tuple[str, str, str]:
    """Of D, A and B."""
    names = [name.lower() for name in d.instruction.modifiers if name.lower() in ("f32", *_KINDS)]
    if d.instruction.base == "IMMA":
        return "s32", names[0], names[1]
    d_type, *operands = names
    a_type, *others = operands or ["f16"]
    return d_type, a_type, others[0] if others else a_type
