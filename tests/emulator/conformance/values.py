"""Inputs that are the same on every machine and under every NumPy: edge cases and random bits."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic.formats import BF16, F16, F32, F64, Format, decode, encode

WIDTH = {
    "s8": 32, "u8": 32, "s16": 16, "u16": 16, "b16": 16, "f16": 16, "bf16": 16,
    "e4m3x2": 16, "e5m2x2": 16,
    "s32": 32, "u32": 32, "b32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "shift": 32,
    "s64": 64, "u64": 64, "b64": 64, "f64": 64,
    "pred": 32,
}  # fmt: skip
"""Bits of the register and of the array element that hold a kind of value."""

DTYPE = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_FORMAT = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def random_bits(seed: str, count: int) -> npt.NDArray[np.uint64]:
    """`count` random words; PCG64's raw stream is the part of NumPy's generators that is fixed."""
    return np.random.PCG64(zlib.crc32(seed.encode())).random_raw(count).astype(np.uint64)


def bell(seed: str, count: int, scale: float = 1.0) -> npt.NDArray[np.float64]:
    """Roughly normal values: the sum of four uniform ones, centred, of unit variance."""
    words = random_bits(seed, count)
    parts = [
        ((words >> np.uint64(16 * i)) & np.uint64(0xFFFF)).astype(np.float64) for i in range(4)
    ]
    return (sum(parts) - 2 * 65535) / 65536 * np.sqrt(3.0) * scale


def float_edges(fmt: Format) -> list[int]:
    """Patterns at which an implementation goes wrong: limits, halves, NaNs, both signs."""
    infinity = fmt.infinity or 0
    one = (1 - fmt.min_exponent) << (fmt.precision - 1)
    smallest_normal = 1 << (fmt.precision - 1)
    positive = [
        0, 1, 2, 3, smallest_normal - 1, smallest_normal, smallest_normal + 1,
        one - 1, one, one + 1, one + (1 << (fmt.precision - 2)),
        fmt.max_finite - 1, fmt.max_finite, infinity, infinity + 1, fmt.sign - 1,
    ]  # fmt: skip
    turning = [int(pattern) for pattern in encode(np.array(_TURNING), fmt)]
    return [pattern | sign for pattern in (*positive, *turning) for sign in (0, fmt.sign)]


_TURNING = [
    0.5, 1.5, 2.5, 127.5, 255.5, 32767.5, 65535.5, 2.0**31, 2.0**31 - 0.5, 2.0**32, 2.0**63,
    2.0**64, 448.0, 463.0, 464.0, 465.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0, 2.0**-10,
    2.0**-9 * 1.5, 2.0**-24, 2.0**-25, 2.0**-126 * (1 - 2.0**-25), 2.0**-126 * (1 - 2.0**-24),
    2.0**-149, 2.0**-150, 2.0**-150 * 1.5, 2.0**128 * (1 - 2.0**-24), 2.0**128 * (1 - 2.0**-25),
    2.0**128,
]  # fmt: skip
"""Where conversions among the formats and the integers turn: ties, limits, half subnormals."""


def integer_edges(width: int) -> list[int]:
    top = 1 << (width - 1)
    return [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1,
            0x5555555555555555 % (2 * top), 0xAAAAAAAAAAAAAAAA % (2 * top)]  # fmt: skip


def operands(
    kinds: tuple[str, ...], seed: str, count: int
) -> list[npt.NDArray[np.unsignedinteger]]:
    """One array a kind. The first half mixes edge cases, the rest is random, in three styles."""
    arrays = [_column(kind, f"{seed}/{i}", count) for i, kind in enumerate(kinds)]
    if len(kinds) == 3 and kinds[0] == kinds[1] == kinds[2] and kinds[0] in _FORMAT:
        _cancel(arrays, kinds[0])
    return arrays


def _column(kind: str, seed: str, count: int) -> npt.NDArray[np.unsignedinteger]:
    width = WIDTH[kind]
    dtype = DTYPE[width]
    words = random_bits(seed, count)
    result = (words & np.uint64((1 << width) - 1)).astype(dtype)
    choice = random_bits(seed + "/edge", count)
    edges = _edges(kind)
    half = count // 2
    result[:half] = edges[(choice[:half] % np.uint64(len(edges))).astype(np.int64)]
    if kind in _FORMAT:
        third = half + count // 4
        values = bell(seed + "/bell", count - third, 16.0)
        result[third:] = encode(values, _FORMAT[kind])
    if kind == "shift":
        result[half:] %= 70
    return result


def _edges(kind: str) -> npt.NDArray[np.unsignedinteger]:
    dtype = DTYPE[WIDTH[kind]]
    if kind in _FORMAT:
        return np.array(float_edges(_FORMAT[kind]), dtype)
    if kind in ("f16x2", "bf16x2"):
        single = float_edges(_FORMAT[kind[:-2]])
        return np.array([low | (high << 16) for low in single for high in single[::3]], dtype)
    if kind in ("e4m3x2", "e5m2x2"):
        return np.array([code | (code ^ 0x55) << 8 for code in range(256)], dtype)
    return np.array(integer_edges(WIDTH[kind]), dtype)


def _cancel(arrays: list[npt.NDArray[np.unsignedinteger]], kind: str) -> None:
    """Makes c of a*b + c nearly -a*b in the last eighth, where one rounding shows."""
    fmt = _FORMAT[kind]
    last = slice(-(len(arrays[0]) // 8), None)
    a, b = (encode(bell(f"cancel/{kind}/{i}", -last.start), fmt) for i in range(2))
    product = encode(-decode(a, fmt) * decode(b, fmt), fmt)
    nudged = product + (np.arange(len(product)) % 3).astype(product.dtype) - product.dtype.type(1)
    arrays[0][last], arrays[1][last], arrays[2][last] = a, b, nudged
