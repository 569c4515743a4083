"""What one wgmma instruction computes: its operands, and the product of its matrices."""

from __future__ import annotations

import functools

import msgspec
import numpy as np

from warpsim.arithmetic import tensor
from warpsim.arithmetic.matrices import fragments, sparse
from warpsim.arithmetic.operands import is_finite
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.site import Site
from warpsim.machine.tensor.matrix_operands import K_BYTES
from warpsim.machine.tensor.products import Sparsity

ELEMENT = {"e4m3": 1, "e5m2": 1, "f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1}
ROWS = 64
A_REGISTERS = 4


class Wgmma(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one instruction computes, D = A * B or D + A * B; its operands as slots."""

    site: Site
    n: int
    d_type: str
    a_type: str
    b_type: str
    d: tuple[int, ...]
    a: tuple[int, ...]
    """Four registers; or a descriptor, as `b`."""
    b: tuple[int, ...]
    """A descriptor: one slot of 64 bits, or two of 32 with the lower half first."""
    scale: tuple[int, bool] | None = None
    """The predicate, and whether it is negated, of adding to D; None: always."""
    negate: tuple[bool, bool] = (False, False)
    transpose_a: bool = False
    transpose_b: bool = False
    saturate: bool = False
    sparsity: Sparsity | None = None

    commits: bool = False
    """Whether it also closes the warp's group."""

    @property
    def element(self) -> int:
        """Bytes of an element of A and B."""
        return ELEMENT[self.a_type]

    @property
    def b_row_bytes(self) -> int:
        """Of K: a sparse A holds half of it."""
        return K_BYTES if self.sparsity is None else 2 * K_BYTES

    @property
    def a_in_registers(self) -> bool:
        return len(self.a) == A_REGISTERS


def from_registers(wgmma: Wgmma, warps: list[Array]) -> Array:
    """A from the registers of the four warps: [64, K] codes."""
    values = list(np.stack(warps, axis=1))
    return fragments.operand(values, 16, 8 * wgmma.element).reshape(ROWS, -1)


def product(wgmma: Wgmma, a: Array, b: Array, c: Array | None, where: Array | None) -> Array:
    """D, [64, n]; where: the places along K of the elements of a sparse A, [64, K / 2]."""
    if wgmma.d_type != "s32":
        for flag, codes in zip(wgmma.negate, (a, b), strict=True):
            if flag:
                codes ^= codes.dtype.type(1 << (8 * wgmma.element - 1))
    if where is None:
        return _dense(wgmma, a, b, c)
    addend = np.zeros((len(a), len(b)), np.uint16 if wgmma.d_type == "f16" else np.uint32)
    matrices = (a[None], b[None], addend[None] if c is None else c[None], where[None])
    by_row = not is_finite(b, wgmma.b_type)
    return sparse.product(*matrices, functools.partial(_each, wgmma), by_row=by_row).squeeze(0)


def _each(wgmma: Wgmma, a: Array, b: Array, c: Array) -> Array:
    return np.stack([_dense(wgmma, *matrices) for matrices in zip(a, b, c, strict=True)])


def _dense(wgmma: Wgmma, a: Array, b: Array, c: Array | None) -> Array:
    a_type, b_type = wgmma.a_type, wgmma.b_type
    if wgmma.d_type == "s32":
        signed = {"a_signed": a_type == "s8", "b_signed": b_type == "s8"}
        return tensor.mma_int8(a, b, c, **signed, satfinite=wgmma.saturate)
    precision = tensor.WGMMA_FP8 if wgmma.element == 1 else tensor.WGMMA
    function = tensor.mma_f16 if wgmma.d_type == "f16" else tensor.mma
    return function(a, b, c, a_type=a_type, b_type=b_type, precision=precision)
