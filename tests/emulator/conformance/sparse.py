"""Products with a sparse A, half of whose elements are stored: mma.sp and wgmma.mma_async.sp."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from warpsim.arithmetic import narrow, tensor
from warpsim.arithmetic.matrices import sparse
from warpsim.arithmetic.matrices.fragments import WIDTH

from . import matrices
from .case import Array, Case, case, output
from .values import random_bits


class Sparse(matrices.Product, frozen=True, kw_only=True):
    """A holds [M][K] of the elements of M x 2K, and B is [N][2K]; of four bits, two in a byte, and
    K counts bytes. `compute` gets A, B, C, and where the elements of A belong."""

    selector: int
    ordered: bool

    @property
    def threads(self) -> int:
        return 32 * self.m // 16

    @property
    def stored(self) -> int:
        """Elements in a row of A."""
        return self.k * 8 // WIDTH[self.a_type] if WIDTH[self.a_type] < 8 else self.k


ASCENDING = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
"""Two indices into a group of four, the first one low."""
DESCENDING = (0b0001, 0b0010, 0b0011, 0b0110, 0b0111, 0b1011)
ONE_OF_TWO = (0b0100, 0b1110)


def metadata(product: Sparse, seed: str, count: int) -> Array:
    """A word for each thread, [count, threads]: meaningful ones, whether they count or not."""
    choices = np.array(ASCENDING if product.ordered else ASCENDING + DESCENDING, np.uint32)
    if product.a_type == "tf32":
        choices = np.array(ONE_OF_TWO, np.uint32)
    drawn = random_bits(seed, count * product.threads * 8).reshape(count, product.threads, 8)
    groups = choices[drawn % np.uint64(len(choices))] << np.arange(0, 32, 4, dtype=np.uint32)
    return np.bitwise_or.reduce(groups, axis=2).astype(np.uint32)


def batch(product: Sparse, seed: str, count: int) -> tuple[Array, Array, Array, Array]:
    """A [count, M, K], B [count, N, 2K], C [count, M, N] and the metadata."""
    a, _, c = matrices.batch(product, seed, count)
    _, b, _ = matrices.batch(msgspec.structs.replace(product, k=2 * product.k), seed, count)
    return a, b, c, metadata(product, f"{seed}/meta", count)


def expected(product: Sparse, a: Array, b: Array, c: Array, words: Array) -> Array:
    """What the arithmetic package makes of a batch."""
    width = WIDTH[product.a_type]
    groups = sparse.groups(product.stored, width)
    nibbles = sparse.nibbles(words.reshape(-1, 32), groups, width, product.selector)
    places = sparse.located(nibbles, width).reshape(len(a), product.m, -1)
    a, b = _codes(product, a, product.a_type), _codes(product, b, product.b_type)
    return sparse.product(a, b, c, places, lambda *each: _multiplied(product, *each), by_row=True)


def _codes(product: Sparse, matrices: Array, kind: str) -> Array:
    """Codes of a byte or more, [count, rows, K]."""
    count, rows = matrices.shape[:2]
    if WIDTH[kind] == 4:
        return narrow.of_nibbles(matrices.reshape(count * rows, -1), kind).reshape(count, rows, -1)
    if product.entry.endswith("_transposed"):
        return np.ascontiguousarray(matrices.reshape(count, -1, rows).swapaxes(1, 2))
    return matrices


def _multiplied(product: Sparse, a: Array, b: Array, c: Array) -> Array:
    return np.stack([product.compute(*item) for item in zip(a, b, c, strict=True)])


def cases(count: int = len(matrices.STYLES), seed: str = "") -> Iterator[Case]:
    for product in (*MMA, *WGMMA):
        items = 2 * count if product.m == 16 else count
        arrays = dict(
            zip(("a", "b", "c", "meta"), batch(product, seed + product.entry, items), strict=True)
        )
        arrays["d"] = output(arrays["c"].size, arrays["c"].dtype.type)
        yield case(product.entry, product.entry, items, product.threads, arrays, "d")
    if not seed:
        yield swizzled()


def swizzled() -> Case:
    """A chain of four products with operands swizzled by 128 bytes."""
    product = msgspec.structs.replace(WGMMA[0], entry="sparsegroup_swizzle_128B", k=128)
    a, b, _, words = batch(product, product.entry, 2)
    halves = np.ascontiguousarray(b.reshape(2, 16, 2, 128).swapaxes(1, 2))
    arrays: dict[str, Array] = {"a": a, "b": halves, "meta": words, "d": output(2 * 64 * 16)}
    return case(product.entry, product.entry, 2, 128, arrays, "d", smem=(64 + 32) * 128)


def _float(
    a_type: str, b_type: str, c_type: str, precision: tensor.Precision
) -> Callable[..., Array]:
    function = tensor.mma if c_type == "f32" else tensor.mma_f16
    return lambda a, b, c: function(a, b, c, a_type=a_type, b_type=b_type, precision=precision)


def _sync_fp8(a_type: str, b_type: str) -> Callable[..., Array]:
    return lambda a, b, c: tensor.mma_sync_fp8(a, b, c, a_type=a_type, b_type=b_type)


def _integer(a_type: str, b_type: str, satfinite: bool) -> Callable[..., Array]:
    return lambda a, b, c: tensor.mma_int8(
        a, b, c, a_signed=a_type[0] == "s", b_signed=b_type[0] == "s", satfinite=satfinite
    )


def _product(
    entry: str,
    types: str,
    c_type: str = "f32",
    *,
    selector: int = 0,
    short: bool = False,
    ordered: bool = True,
    satfinite: bool = False,
) -> Sparse:
    a_type, _, b_type = types.partition(" ")
    b_type = b_type or a_type
    group = entry.startswith("sparsegroup")
    width = WIDTH[a_type]
    if c_type == "s32":
        compute = _integer(a_type, b_type, satfinite)
    elif group:
        compute = _float(a_type, b_type, c_type, tensor.WGMMA_FP8 if width == 8 else tensor.WGMMA)
    elif width == 8:
        compute = _sync_fp8(a_type, b_type)
    else:
        compute = _float(a_type, b_type, c_type, tensor.MMA_SYNC)
    return Sparse(
        entry=entry,
        m=64 if group else 16,
        n=16 if group else 8,
        k=(16 if short else 32) * 8 // max(width, 8),
        a_type=a_type,
        b_type=b_type,
        c_type=c_type,
        compute=compute,
        selector=selector,
        ordered=ordered,
    )


def _negated(a: Array, b: Array, c: Array) -> Array:
    return tensor.mma(a ^ np.uint16(0x8000), b, c, a_type="bf16", precision=tensor.WGMMA)


MMA: tuple[Sparse, ...] = (
    _product("sparse_f16", "f16"),
    _product("sparse_bf16", "bf16", selector=1),
    _product("sparse_tf32", "tf32"),
    _product("sparse_tf32_upper", "tf32", selector=1),
    _product("sparse_e4m3", "e4m3"),
    _product("sparse_e5m2_e4m3", "e5m2 e4m3"),
    _product("sparse_s8", "s8", "s32"),
    _product("sparse_u8_s8", "u8 s8", "s32", satfinite=True),
    _product("sparse_f16_k16", "f16", short=True),
    _product("sparse_bf16_k16", "bf16", short=True, selector=3),
    _product("sparse_tf32_k8", "tf32", short=True, selector=2),
    _product("sparse_s8_k32", "s8", "s32", short=True),
    _product("sparse_u8_k32", "u8", "s32", short=True, selector=1),
    _product("sparse_s4", "s4", "s32"),
    _product("sparse_u4_s4_k64", "u4 s4", "s32", short=True, selector=1),
    _product("sparse_f16_unordered", "f16", ordered=False),
    _product("sparse_s8_unordered", "s8", "s32", ordered=False),
    _product("sparse_e4m3_unordered", "e4m3", ordered=False),
    _product("sparse_f16_f16", "f16", "f16"),
)

WGMMA: tuple[Sparse, ...] = (
    _product("sparsegroup_e4m3", "e4m3"),
    _product("sparsegroup_e5m2_e4m3", "e5m2 e4m3"),
    _product("sparsegroup_bf16", "bf16"),
    msgspec.structs.replace(
        _product("sparsegroup_bf16_negated", "bf16", selector=1), compute=_negated
    ),
    _product("sparsegroup_f16", "f16", selector=1),
    _product("sparsegroup_tf32", "tf32"),
    _product("sparsegroup_tf32_upper", "tf32", selector=1),
    _product("sparsegroup_s8", "s8", "s32"),
    _product("sparsegroup_u8", "u8", "s32", satfinite=True),
    _product("sparsegroup_bf16_unordered", "bf16", ordered=False),
    _product("sparsegroup_s8_unordered", "s8", "s32", ordered=False),
    _product("sparsegroup_e4m3_registers", "e4m3"),
    _product("sparsegroup_bf16_registers", "bf16", selector=1),
    _product("sparsegroup_tf32_registers", "tf32"),
    _product("sparsegroup_f16_f16", "f16", "f16"),
    _product("sparsegroup_e4m3_f16", "e4m3", "f16"),
    _product("sparsegroup_bf16_transposed", "bf16"),
)
