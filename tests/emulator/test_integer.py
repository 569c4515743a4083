"""Integer and bit instructions against their definition in Python's unbounded integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from harness import apply
from hypothesis import given, settings
from hypothesis import strategies as st

EDGES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF]
EDGES += [0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 63, (1 << 64) - 1, (1 << 63) - 1]


def words(bits: int) -> st.SearchStrategy[int]:
    mask = (1 << bits) - 1
    return st.sampled_from([e & mask for e in EDGES]) | st.integers(0, mask)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    """Quotient toward zero; all ones for division by zero."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def number(value: int, kind: str) -> int:
    return signed(value, int(kind[1:])) if kind[0] == "s" else value


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": truncated,
    "rem": lambda a, b: a - truncated(a, b) * b,
}


def check(
    opcode: str, bits: int, expected: Callable[..., int], *lanes: list[int], out: int
) -> None:
    arrays = [np.array(values, f"u{bits // 8}") for values in lanes]
    got = apply(opcode, *arrays, result=out)
    mask = (1 << out) - 1
    want = [expected(*values) & mask for values in zip(*lanes, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_arithmetic_is_that_of_integers_modulo_the_width(name, kind, data):
    bits = int(kind[1:])
    a, b = (data.draw(st.lists(words(bits), min_size=16, max_size=16)) for _ in range(2))

    def expected(x: int, y: int) -> int:
        return BINARY[name](number(x, kind), number(y, kind))

    check(f"{name}.{kind}", bits, expected, a, b, out=bits)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_wide_and_high_products_are_exact(kind, data):
    bits = int(kind[1:])
    a, b = (data.draw(st.lists(words(bits), min_size=16, max_size=16)) for _ in range(2))

    def product(x: int, y: int) -> int:
        return number(x, kind) * number(y, kind)

    check(f"mul.wide.{kind}", bits, product, a, b, out=2 * bits)
    check(f"mul.hi.{kind}", bits, lambda x, y: product(x, y) >> bits, a, b, out=bits)


@pytest.mark.parametrize("kind", ["u64", "s64"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_high_products_of_64_bits_are_exact(kind, data):
    a, b = (data.draw(st.lists(words(64), min_size=16, max_size=16)) for _ in range(2))
    check(
        f"mul.hi.{kind}",
        64,
        lambda x, y: number(x, kind) * number(y, kind) >> 64,
        a,
        b,
        out=64,
    )


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_shifts_by_the_width_or_more_leave_nothing(kind, data):
    bits = int(kind[1:])
    a = data.draw(st.lists(words(bits), min_size=16, max_size=16))
    n = data.draw(st.lists(words(32), min_size=16, max_size=16))
    value, count = np.array(a, f"u{bits // 8}"), np.array(n, np.uint32)
    mask = (1 << bits) - 1
    left = [x << y & mask if y < bits else 0 for x, y in zip(a, n, strict=True)]
    right = [x >> y if y < bits else 0 for x, y in zip(a, n, strict=True)]
    assert apply(f"shl.{kind}", value, count, result=bits).tolist() == left
    assert apply(f"shr.{kind}", value, count, result=bits).tolist() == right


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_an_arithmetic_shift_fills_with_the_sign(data):
    a = data.draw(st.lists(words(32), min_size=16, max_size=16))
    n = data.draw(st.lists(words(32), min_size=16, max_size=16))
    got = apply("shr.s32", np.array(a, np.uint32), np.array(n, np.uint32), result=32)
    assert got.tolist() == [
        signed(x, 32) >> min(y, 31) & 0xFFFF_FFFF for x, y in zip(a, n, strict=True)
    ]


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_funnel_shifts_take_the_middle_of_both_words(data):
    a, b, n = (data.draw(st.lists(words(32), min_size=16, max_size=16)) for _ in range(3))

    def left(x: int, y: int, s: int) -> int:
        return (y << 32 | x) << (s & 31) >> 32

    def right(x: int, y: int, s: int) -> int:
        return (y << 32 | x) >> min(s, 32)

    check("shf.l.wrap.b32", 32, left, a, b, n, out=32)
    check("shf.r.clamp.b32", 32, right, a, b, n, out=32)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_counts_and_positions_of_bits(data):
    a = data.draw(st.lists(words(32), min_size=16, max_size=16))
    check("popc.b32", 32, lambda x: x.bit_count(), a, out=32)
    check("clz.b32", 32, lambda x: 32 - x.bit_length(), a, out=32)
    check("bfind.u32", 32, lambda x: x.bit_length() - 1, a, out=32)
    check("brev.b32", 32, lambda x: int(f"{x:032b}"[::-1], 2), a, out=32)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_fields_are_extracted_and_inserted(data):
    a, b = (data.draw(st.lists(words(32), min_size=16, max_size=16)) for _ in range(2))
    p, n = (data.draw(st.lists(st.integers(0, 40), min_size=16, max_size=16)) for _ in range(2))

    def extract(x: int, at: int, length: int) -> int:
        return x >> at & ((1 << length) - 1)

    def extract_signed(x: int, at: int, length: int) -> int:
        if length == 0:
            return 0
        sign = x >> min(at + length - 1, 31) & 1
        return sum(
            (x >> at + i & 1 if at + i < 32 and i < length else sign) << i for i in range(32)
        )

    def insert(x: int, y: int, at: int, length: int) -> int:
        mask = (1 << length) - 1 << at & 0xFFFF_FFFF
        return y & ~mask | x << at & mask

    check("bfe.u32", 32, extract, a, p, n, out=32)
    check("bfe.s32", 32, extract_signed, a, p, n, out=32)
    check("bfi.b32", 32, insert, a, b, p, n, out=32)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_prmt_picks_bytes_and_repeats_signs(data):
    a, b, s = (data.draw(st.lists(words(32), min_size=16, max_size=16)) for _ in range(3))

    def expected(x: int, y: int, selector: int) -> int:
        octets = (y << 32 | x).to_bytes(8, "little")
        result = 0
        for position in range(4):
            nibble = selector >> 4 * position & 15
            octet = octets[nibble & 7]
            result |= (0xFF * (octet >> 7) if nibble & 8 else octet) << 8 * position
        return result

    check("prmt.b32", 32, expected, a, b, s, out=32)


@pytest.mark.parametrize("table", [0x80, 0xE8, 0x96, 0x01, 0xCA])
def test_lop3_follows_its_truth_table(table):
    rng = np.random.default_rng(table)
    a, b, c = (rng.integers(0, 1 << 32, 32, dtype=np.uint32) for _ in range(3))
    got = apply("lop3.b32", a, b, c, result=32, literals=(str(table),))
    want = [
        sum(
            (table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i
            for i in range(32)
        )
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert got.tolist() == want


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_dp4a_sums_four_products_of_bytes(data):
    a, b, c = (data.draw(st.lists(words(32), min_size=16, max_size=16)) for _ in range(3))

    def expected(x: int, y: int, z: int) -> int:
        parts = zip(x.to_bytes(4, "little"), y.to_bytes(4, "little"), strict=True)
        return z + sum(signed(p, 8) * signed(q, 8) for p, q in parts)

    check("dp4a.s32.s32", 32, expected, a, b, c, out=32)


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("kind", ["u32", "s32", "s64", "u16"])
def test_comparisons_know_signs(op, kind):
    bits = int(kind[1:])
    mask = (1 << bits) - 1
    values = [(x & mask, y & mask) for x in [*EDGES[-6:], 0, 1] for y in [*EDGES[-6:], 0, 1]]
    a, b = (np.array(column, f"u{bits // 8}") for column in zip(*values, strict=True))
    got = apply(f"setp.{op}.{kind}", a, b, result=1)
    compare = getattr(int, f"__{op}__")
    assert got.tolist() == [int(compare(number(x, kind), number(y, kind))) for x, y in values]


@pytest.mark.parametrize(
    ("opcode", "bits", "out", "expected"),
    [
        ("cvt.u32.u16", 16, 32, lambda a: a),
        ("cvt.s32.s16", 16, 32, lambda a: signed(a, 16)),
        ("cvt.s64.s32", 32, 64, lambda a: signed(a, 32)),
        ("cvt.u16.u32", 32, 16, lambda a: a),
        ("cvt.u32.u64", 64, 32, lambda a: a),
        ("cvt.sat.u16.s32", 32, 16, lambda a: min(max(signed(a, 32), 0), 0xFFFF)),
        ("cvt.s32.s8", 32, 32, lambda a: signed(a & 0xFF, 8)),
        ("cvt.u32.u8", 16, 32, lambda a: a & 0xFF),
    ],
)
def test_integer_conversions_extend_and_cut(opcode, bits, out, expected):
    values = [e & ((1 << bits) - 1) for e in EDGES]
    check(opcode, bits, expected, values, out=out)


def test_bfi_of_64_bits_takes_position_and_length_as_they_are():
    a, b = (np.full(3, value, np.uint64) for value in (0x11, 0x22))
    position, length = np.array([0, 256, 0], np.uint32), np.array([8, 8, 300], np.uint32)
    assert apply("bfi.b64", a, b, position, length, result=64).tolist() == [0x11, 0x22, 0x11]


def test_a_minimum_or_maximum_with_relu_is_0_at_least():
    a, b = np.array([0xFFFE_0003], np.uint32), np.array([0xFFFF_0002], np.uint32)
    assert apply("max.relu.s16x2", a, b, result=32)[0] == 0x0000_0003
    assert apply("max.s16x2.relu", a, b, result=32)[0] == 0x0000_0003
    assert apply("max.s16x2", a, b, result=32)[0] == 0xFFFF_0003
    assert apply("min.relu.s32", a, b, result=32)[0] == 0
    assert apply("min.s32.relu", a, b, result=32)[0] == 0


def test_the_nth_bit_from_a_base_beyond_the_mask() -> None:
    mask, base, down = (np.array([bits], np.uint32) for bits in (0x14, 0xFFFFFFF0, 0xFFFFFFFF))
    assert apply("fns.b32", mask, base, down, result=32).tolist() == [4]
