"""Instructions that nvcc emits rarely."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from correct.kernel import MASK, Kernel, always, each, signed


def _parts(word: int, width: int, *, sign: bool = False) -> list[int]:
    parts = [word >> at & (1 << width) - 1 for at in range(0, 32, width)]
    return [p - (1 << width) if sign and p >> width - 1 else p for p in parts]


def _packed(parts: list[int], width: int) -> int:
    return sum((p & (1 << width) - 1) << width * i for i, p in enumerate(parts))


def _dot(a: list[int], b: list[int]) -> int:
    return sum(p * q for p, q in zip(a, b, strict=True))


def _dots(t: int, x: list[int]) -> int:
    a, b = x[t], x[64 + t]
    plain = _dot(_parts(a, 8), _parts(b, 8)) + 7
    with_sign = _dot(_parts(a, 8, sign=True), _parts(b, 8, sign=True)) - 3
    low = _dot(_parts(a, 16), _parts(b, 8)[:2]) + 1
    high = _dot(_parts(a, 16, sign=True), _parts(b, 8, sign=True)[2:]) + 5
    return plain + with_sign + low + high


def _prmt(a: int, b: int, selector: int) -> int:
    both = [*_parts(a, 8), *_parts(b, 8)]
    nibbles = [selector >> 4 * i & 15 for i in range(4)]
    return _packed([255 * (both[n & 7] >> 7) if n & 8 else both[n] for n in nibbles], 8)


def _fields(t: int, x: list[int]) -> int:
    a, b = x[t], x[64 + t]
    inserted = b & ~(0x1FF << 5) | (a & 0x1FF) << 5
    at = t % 32
    field = (signed(a) >> at) & 0x7F  # 7 bits, then the highest of them (or the sign) repeated.
    top = a >> min(at + 6, 31) & 1
    field = field | (MASK & ~0x7F if top else 0)
    logic = 0
    for i in range(32):
        index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | t >> i & 1
        logic |= (0x6A >> index & 1) << i
    shift, clamped = t % 32, min(t % 40, 32)
    left = ((b << 32 | a) << shift) >> 32 & MASK
    right = ((b << 32 | a) >> clamped) & MASK
    reversed_ = int(f"{a:032b}"[::-1], 2)
    zeros = 32 - (b >> t % 32).bit_length()
    first = (a & b & -(a & b)).bit_length()
    ones = (a * b).bit_count()
    return (
        inserted
        ^ field
        ^ logic
        ^ _prmt(a, b, 0x9153)
        ^ left
        ^ right
        ^ reversed_
        ^ zeros
        ^ first
        ^ ones
    )


def _nth(t: int, x: list[int]) -> int:
    base, offset = t % 32, t % 7 - 3
    up = [i for i in range(base, 32) if x[t] >> i & 1]
    down = [i for i in range(base, -1, -1) if x[t] >> i & 1]
    if offset == 0:
        return base if x[t] >> base & 1 else MASK
    order = up if offset > 0 else down
    return order[abs(offset) - 1] if len(order) >= abs(offset) else MASK


def _sums(t: int, x: list[int]) -> int:
    a, b = x[t], x[64 + t]
    i, j = signed(a), signed(b)
    low = [(w & 0xFFFFFF) - ((w & 0x800000) << 1) for w in (a, b)]
    return (
        abs(i - j)
        + t
        + abs(a - b)
        + t
        + (i + j >> 1)
        + (i + j + 1 >> 1)
        + (a + b >> 1)
        + (i * j >> 32)
        + (a & 0xFFFFFF) * (b & 0xFFFFFF)
        + low[0] * low[1]
    )


def _wide(t: int, x: list[int]) -> int:
    full = (1 << 64) - 1
    a = x[2 * t] | x[2 * t + 1] << 32
    b = (a * 0x9E3779B97F4A7C15 + t) & full
    high = a * b >> 64
    i, j = (w - (1 << 64) if w >> 63 else w for w in (a, b))
    low = (i * j >> 64) & full
    whole = (a * b + high) & (1 << 128) - 1
    return high ^ low >> 32 ^ whole >> 64 ^ whole % 1000003


def _simd(t: int, x: list[int]) -> int:
    a, b = x[t], x[64 + t]
    pairs = list(zip(_parts(a, 8), _parts(b, 8), strict=True))
    halves = zip(_parts(a, 16, sign=True), _parts(b, 16, sign=True), strict=True)
    return (
        _packed([p + q for p, q in pairs], 8)
        ^ _packed([abs(p - q) for p, q in pairs], 8)
        ^ _packed([max(pair) for pair in halves], 16)
        ^ _packed([255 * (p > q) for p, q in pairs], 8)
        ^ _packed([p + q + 1 >> 1 for p, q in pairs], 8)
    )


def _half_pairs(x: list[int]) -> list[int]:
    def f16(t: int) -> int:
        pairs = ((x[t] % 17, t % 8), (x[t] % 5, -3))
        low, high = (max(0, a * b - max(a, b)) for a, b in pairs)
        return low + 1000 * high

    def bf16(t: int) -> int:
        low, high = (d * d + abs(d - 9) for d in (x[t] % 13, t % 9))
        return low + 1000 * high

    return [*(f16(t) for t in range(64)), *(bf16(t) for t in range(64))]


def _carries(t: int, x: list[int]) -> int:
    a, b = x[t], x[64 + t]
    first = a + b
    second = a + b + (first >> 32)
    third = (a * b & MASK) + a + (second >> 32)
    return (first ^ second ^ third ^ b + (third >> 32)) & MASK


def _double(t: int, x: list[int]) -> int:
    value = x[t] / 2**32 + 0.25
    square = float(Fraction(value) * Fraction(value) + 1)
    y = value / 3 + math.sqrt(value) + square + math.fmod(value * 7, 0.3)
    low, high = struct.unpack("<II", struct.pack("<d", y))
    return low ^ high


def _divided(a: int, b: int) -> tuple[int, int]:
    """Quotient and remainder as C has them."""
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def _divisions(t: int, x: list[int]) -> int:
    a, b = x[t], x[64 + t] % 97 + 1
    c, d = a * 77777 - 5000000000, b - 50
    return (
        a // b
        + a % b
        + _divided(c, d or 1)[0]
        + _divided(c, d or 7)[1]
        + _divided(signed(a), -7)[0]
        + _divided(signed(a), 13)[1]
    )


KERNELS = (
    Kernel("dot_products_of_bytes", "`dp4a` and `dp2a`, with and without signs.", each(_dots)),
    Kernel(
        "fields_and_permutations",
        "`bfi`, `bfe`, `lop3`, `prmt` with signs, funnel shifts, `brev`, `clz`, `popc`.",
        each(_fields),
    ),
    Kernel("nth_set_bit", "`__fns`, upwards and downwards.", each(_nth)),
    Kernel(
        "sums_of_differences_and_averages",
        "`sad`, averages, high halves of products, 24-bit products.",
        each(_sums),
    ),
    Kernel("wide_products", "High halves of 64-bit products, and 128-bit integers.", each(_wide)),
    Kernel(
        "bytes_and_halves_in_one_word",
        "SIMD intrinsics, among them `vabsdiff4`.",
        each(_simd),
    ),
    Kernel("halves_in_pairs", "f16x2 and bf16x2: `fma.relu`, `max`, `neg`, `abs`.", _half_pairs),
    Kernel("carries_over_four_words", "`add.cc`, `madc.lo.cc`, `addc`.", each(_carries)),
    Kernel(
        "double_precision_functions", "Division, root, `fma` and `fmod` of doubles.", each(_double)
    ),
    Kernel("functions_of_the_library", "CUDA's mathematical functions.", always(1)),
    Kernel(
        "division_by_numbers_of_every_size",
        "Integer division, as nvcc expands it.",
        each(_divisions),
    ),
)
