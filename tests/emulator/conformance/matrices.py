"""Operands for the tensor instructions, in styles that each break another wrong model."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from warpsim.arithmetic import tensor
from warpsim.arithmetic.formats import BF16, E4M3, E5M2, F16, F32, Format, encode

from .values import bell, random_bits

Array = npt.NDArray[np.unsignedinteger]

STYLES = ("bell", "wide", "codes", "cancel", "subnormal", "carry", "special")
"""bell: normal values. wide: exponents far apart. codes: every finite pattern alike. cancel: pairs
that annihilate, so that C's low bits and the truncated terms are what is left. subnormal: smallest
exponents. carry: few values, C with low bits. special: NaNs and infinities among them."""

_FORMATS: dict[str, Format] = {"e4m3": E4M3, "e5m2": E5M2, "f16": F16, "bf16": BF16, "tf32": F32}


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor instruction: D[M][N] = A[M][K] * B[N][K]^T + C[M][N]."""

    entry: str
    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    c_type: str
    compute: Callable[[Array, Array, Array], Array]


def codes(kind: str, style: str, seed: str, shape: tuple[int, int]) -> Array:
    """Operand codes of one matrix."""
    count = shape[0] * shape[1]
    words = random_bits(seed, count).reshape(shape)
    if kind in ("s8", "u8", "s4", "u4"):
        return words.astype(np.uint8)
    fmt = _FORMATS[kind]
    finite = _finite(words, fmt)
    if style == "codes":
        return finite
    if style == "special":
        rare = random_bits(seed + "/rare", count).reshape(shape) % 64 == 0
        return np.where(rare, words.astype(fmt.dtype), finite)
    if style == "subnormal":
        low = np.uint64((2 << (fmt.precision - 1)) - 1)
        sign = (words >> np.uint64(40)) & np.uint64(1)
        return ((words & low) | sign << np.uint64(fmt.bits - 1)).astype(fmt.dtype)
    values = bell(seed + "/bell", count).reshape(shape)
    if style == "wide":
        values = values * 2.0 ** ((words % 19).astype(np.float64) - 10)
    if style == "carry":
        values = np.where(words % 4 == 0, values, 0.0)
    if style == "cancel":
        values[:, 1::2] = values[:, ::2]
        if "/b" in seed:
            values[:, 1::2] *= -1
    return encode(values, fmt, satfinite=True)


def _finite(words: npt.NDArray[np.uint64], fmt: Format) -> Array:
    pattern = words & np.uint64(fmt.sign - 1)
    if fmt.name == "e4m3":
        pattern = np.where(pattern == fmt.nan, 0x33, pattern)
    else:
        # Clears an exponent bit where the pattern is an infinity or NaN.
        beyond = pattern >= np.uint64(fmt.infinity or 0)
        pattern = np.where(beyond, pattern ^ np.uint64(1 << (fmt.precision - 1)), pattern)
    return (pattern | (words & np.uint64(fmt.sign))).astype(fmt.dtype)


def addend(kind: str, style: str, seed: str, shape: tuple[int, int]) -> Array:
    """C of one matrix: f32, f16 or s32 patterns."""
    count = shape[0] * shape[1]
    words = random_bits(seed, count).reshape(shape)
    if kind == "s32":
        return (words & np.uint64(0xFFFFFFFF if style == "codes" else 0x800FFFFF)).astype(np.uint32)
    fmt = F32 if kind == "f32" else F16
    if style in ("codes", "special"):
        finite = _finite(words, fmt)
        if style == "special":
            rare = random_bits(seed + "/rare", count).reshape(shape) % 64 == 0
            odd = [0x7F800000, 0xFF800000, 0x7FC12345] if kind == "f32" else [0x7C00] * 3
            return np.where(rare, np.array(odd, np.uint64)[words % 3], finite).astype(fmt.dtype)
        return finite
    values = bell(seed + "/bell", count).reshape(shape)
    spread = {"wide": 31, "cancel": 41, "subnormal": 61}.get(style, 9)
    values = values * 2.0 ** ((words % spread).astype(np.float64) - spread // 2)
    if style == "subnormal":
        values *= 2.0**-20 if kind == "f32" else 2.0**-10
    zero = (words >> np.uint64(32)) % 8 == 0
    values = np.where(zero, np.where(words % 2 == 0, 0.0, -0.0), values)
    return encode(values, fmt, satfinite=True)


def batch(product: Product, seed: str, count: int) -> tuple[Array, Array, Array]:
    """A [count, M, K], B [count, N, K], C [count, M, N]; item i in style i modulo the styles."""
    parts = [_item(product, STYLES[i % len(STYLES)], f"{seed}/{i}") for i in range(count)]
    return tuple(np.ascontiguousarray(np.stack(column)) for column in zip(*parts, strict=True))  # type: ignore[return-value]


def _item(product: Product, style: str, seed: str) -> tuple[Array, Array, Array]:
    m, n, k = product.m, product.n, product.k
    return (
        codes(product.a_type, style, f"{seed}/a", (m, k)),
        codes(product.b_type, style, f"{seed}/b", (n, k)),
        addend(product.c_type, style, f"{seed}/c", (m, n)),
    )


def expected(product: Product, a: Array, b: Array, c: Array) -> Array:
    """What the arithmetic package makes of a batch."""
    return np.stack([product.compute(*item) for item in zip(a, b, c, strict=True)])


def _wide(a_type: str, b_type: str, precision: tensor.Precision) -> Callable[..., Array]:
    return lambda a, b, c: tensor.mma(a, b, c, a_type=a_type, b_type=b_type, precision=precision)


def _half(a_type: str, b_type: str, precision: tensor.Precision) -> Callable[..., Array]:
    return lambda a, b, c: tensor.mma_f16(
        a, b, c, a_type=a_type, b_type=b_type, precision=precision
    )


def _sync_fp8(a_type: str, b_type: str, c_type: str) -> Callable[..., Array]:
    return lambda a, b, c: tensor.mma_sync_fp8(
        a, b, c, a_type=a_type, b_type=b_type, f16=c_type == "f16"
    )


def _bytes(a_type: str, b_type: str, satfinite: bool = False) -> Callable[..., Array]:
    return lambda a, b, c: tensor.mma_int8(
        a, b, c, a_signed=a_type == "s8", b_signed=b_type == "s8", satfinite=satfinite
    )


def _product(
    entry: str, k: int, types: str, c_type: str, compute: Callable[..., Array], m: int, n: int
) -> Product:
    a_type, _, b_type = types.partition(" ")
    return Product(
        entry=entry, m=m, n=n, k=k, a_type=a_type, b_type=b_type or a_type, c_type=c_type,
        compute=compute,
    )  # fmt: skip


def _float(
    entry: str, k: int, types: str, c_type: str, sync: bool, shape: tuple[int, int]
) -> Product:
    a_type, _, b_type = types.partition(" ")
    eight = a_type in ("e4m3", "e5m2")
    if sync and eight:
        return _product(
            entry, k, types, c_type, _sync_fp8(a_type, b_type or a_type, c_type), *shape
        )
    precision = tensor.MMA_SYNC if sync else tensor.WGMMA_FP8 if eight else tensor.WGMMA
    make = _wide if c_type == "f32" else _half
    return _product(entry, k, types, c_type, make(a_type, b_type or a_type, precision), *shape)


_SYNC, _GROUP = (16, 8), (64, 16)

MMA: tuple[Product, ...] = (
    _float("mma_bf16", 16, "bf16", "f32", True, _SYNC),
    _float("mma_f16", 16, "f16", "f32", True, _SYNC),
    _float("mma_tf32", 8, "tf32", "f32", True, _SYNC),
    _float("mma_e4m3", 32, "e4m3", "f32", True, _SYNC),
    _float("mma_e5m2", 32, "e5m2", "f32", True, _SYNC),
    _float("mma_e4m3_e5m2", 32, "e4m3 e5m2", "f32", True, _SYNC),
    _float("mma_bf16_k8", 8, "bf16", "f32", True, _SYNC),
    _float("mma_f16_k8", 8, "f16", "f32", True, _SYNC),
    _float("mma_f16_f16", 16, "f16", "f16", True, _SYNC),
    _float("mma_e4m3_f16", 32, "e4m3", "f16", True, _SYNC),
    _product("mma_s8", 32, "s8", "s32", _bytes("s8", "s8"), *_SYNC),
    _product("mma_u8", 32, "u8", "s32", _bytes("u8", "u8"), *_SYNC),
    _product("mma_s8_u8", 32, "s8 u8", "s32", _bytes("s8", "u8", True), *_SYNC),
)


def _negated(a: Array, b: Array, c: Array) -> Array:
    sign = np.uint16(0x8000)
    return tensor.mma(a ^ sign, b, c, a_type="bf16", precision=tensor.WGMMA)


def _by_column(a: Array, b: Array, c: Array) -> Array:
    # B comes as [K][N], both 16.
    return tensor.mma(a, np.ascontiguousarray(b.T), c, a_type="bf16", precision=tensor.WGMMA)


WGMMA: tuple[Product, ...] = (
    _float("wgmma_e4m3", 32, "e4m3", "f32", False, _GROUP),
    _float("wgmma_e4m3_registers", 32, "e4m3", "f32", False, _GROUP),
    _float("wgmma_e5m2", 32, "e5m2", "f32", False, _GROUP),
    _float("wgmma_e4m3_e5m2", 32, "e4m3 e5m2", "f32", False, _GROUP),
    _float("wgmma_e4m3_f16", 32, "e4m3", "f16", False, _GROUP),
    _float("wgmma_bf16", 16, "bf16", "f32", False, _GROUP),
    _product("wgmma_bf16_negated", 16, "bf16", "f32", _negated, *_GROUP),
    _product("wgmma_bf16_transposed", 16, "bf16", "f32", _by_column, *_GROUP),
    _float("wgmma_f16", 16, "f16", "f32", False, _GROUP),
    _float("wgmma_f16_f16", 16, "f16", "f16", False, _GROUP),
    _float("wgmma_tf32", 8, "tf32", "f32", False, _GROUP),
    _product("wgmma_s8", 32, "s8", "s32", _bytes("s8", "s8"), *_GROUP),
    _product("wgmma_u8", 32, "u8", "s32", _bytes("u8", "u8"), *_GROUP),
)
