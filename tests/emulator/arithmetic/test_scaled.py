"""Products of matrices whose blocks have scales, and scales by themselves, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from definition import exponent, floor_log2, narrow_value, to_f32, truncated, value
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.arithmetic import narrow
from warpsim.arithmetic.formats import E4M3, F32
from warpsim.arithmetic.matrices import scaled

codes = st.integers(0, 0x7E) | st.integers(0x80, 0xFE)
scales = st.integers(100, 150) | st.integers(0, 254)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False).map(
    lambda x: int(np.float32(x).view(np.uint32))
)


def fused(terms: list[tuple[Fraction, int]], fraction: int) -> int:
    """(term, exponent) truncated below the largest exponent, added, truncated to f32."""
    unit = Fraction(2) ** (max(power for _, power in terms) - fraction)
    return to_f32(sum((truncated(term, unit) for term, _ in terms), Fraction(0)), 24)


def bytes_of(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.uint8)


@settings(deadline=None, max_examples=12)
@given(
    a=st.lists(codes, min_size=32, max_size=32),
    b=st.lists(codes, min_size=32, max_size=32),
    c=floats,
    factors=st.tuples(scales, scales),
)
def test_one_scale_a_row_shifts_the_exponents_of_the_products(
    a: list[int], b: list[int], c: int, factors: tuple[int, int]
) -> None:
    power = sum(factors) - 2 * 127
    terms = [
        (value(x, E4M3) * value(y, E4M3) * Fraction(2) ** power,
         exponent(x, E4M3) + exponent(y, E4M3) + power)
        for x, y in zip(a, b, strict=True)
    ]  # fmt: skip
    terms = [term for term in [*terms, (value(c, F32), exponent(c, F32))] if term[0]]
    got = scaled.mma(
        bytes_of(a), np.repeat(bytes_of(b), 8, 0), np.full((1, 8), c, np.uint32),
        bytes_of([factors[0]]), np.repeat(bytes_of([factors[1]]), 8, 0), a_type="e4m3",
        b_type="e4m3",
    )  # fmt: skip
    assert int(got[0, 0]) == (fused(terms, 25) if terms else 0)


def parts(scale: int, kind: str) -> tuple[Fraction, int]:
    """(value, exponent) of a scale factor."""
    if kind == "ue8m0":
        return Fraction(2) ** (scale - 127), scale - 127
    number = value(scale & 0x7F, E4M3)
    return number, exponent(scale & 0x7F, E4M3) if number else -126


@pytest.mark.parametrize(("kind", "count"), [("ue8m0", 2), ("ue8m0", 4), ("ue4m3", 4)])
@settings(deadline=None, max_examples=12)
@given(data=st.data(), c=floats)
def test_sums_of_16_products_are_exact_before_they_are_scaled(
    kind: str, count: int, data: st.DataObject, c: int
) -> None:
    a, b = (data.draw(st.lists(st.integers(0, 15), min_size=64, max_size=64)) for _ in "ab")
    one = scales if kind == "ue8m0" else st.integers(0, 0x7E)
    x, y = (data.draw(st.lists(one, min_size=count, max_size=count)) for _ in "xy")
    terms = [(value(c, F32), exponent(c, F32))]
    for first in range(0, 64, 16):
        total = sum(
            (signed(p) * signed(q) for p, q in
             zip(a[first : first + 16], b[first : first + 16], strict=True)), Fraction(0)
        )  # fmt: skip
        left, right = (parts(item[first * count // 64], kind) for item in (x, y))
        terms.append((total * left[0] * right[0], left[1] + right[1]))
    got = scaled.mma_e2m1(
        bytes_of(a), bytes_of(b), np.full((1, 1), c, np.uint32), bytes_of(x), bytes_of(y),
        scale_type=kind,
    )  # fmt: skip
    assert int(got[0, 0]) == fused(terms, 35)


def signed(code: int) -> Fraction:
    number = narrow_value(code % 8, "e2m1")
    return -number if code & 8 else number


@pytest.mark.parametrize("nan", ["scale of A", "scale of B", "C"])
def test_a_nan_reaches_the_row_or_column_that_has_it(nan: str) -> None:
    a, b = np.full((2, 64), 2, np.uint8), np.full((8, 64), 2, np.uint8)
    x, y = np.full((2, 2), 127, np.uint8), np.full((8, 2), 127, np.uint8)
    c = np.zeros((2, 8), np.uint32)
    want = np.full((2, 8), 64.0)
    if nan == "C":
        c[1, 3], want[1, 3] = 0x7FC00000, np.nan
    elif nan == "scale of A":
        x[1, 1], want[1] = 0xFF, np.nan
    else:
        y[3, 0], want[:, 3] = 0xFF, np.nan
    got = scaled.mma_e2m1(a, b, c, x, y, scale_type="ue8m0").view(np.float32)
    assert np.array_equal(got, want, equal_nan=True)
    narrow_scales = (x[:, :1] if nan != "scale of A" else x[:, 1:], y[:, :1])
    one = np.full(1, 0x38, np.uint8)  # 1.0 in E4M3
    got = scaled.mma(
        np.broadcast_to(one, (2, 64)), np.broadcast_to(one, (8, 64)), c, *narrow_scales,
        a_type="e4m3", b_type="e4m3",
    ).view(np.float32)  # fmt: skip
    assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("bits", [4, 6])
def test_packed_codes_are_read_from_the_low_bits_on_and_padding_is_not(bits: int) -> None:
    rng = np.random.default_rng(bits)
    codes = rng.integers(0, 1 << bits, (5, 32))
    data = np.full((5, 32), 0xAA, np.uint8)
    for row, chunk in np.ndindex(5, 2):
        word = sum(int(code) << bits * i for i, code in enumerate(codes[row, 16 * chunk :][:16]))
        data[row, 16 * chunk :][: 2 * bits] = list(word.to_bytes(2 * bits, "little"))
    read = narrow.of_chunks(data, bits)
    assert (read == codes).all()
    assert (narrow.of_containers(narrow.in_containers(read, bits), bits) == codes).all()


def test_codes_of_four_bits_lie_in_the_middle_of_their_containers() -> None:
    assert narrow.in_containers(np.array([0b1011], np.uint8), 4).tolist() == [0b00101100]


def test_two_codes_in_a_byte_begin_with_the_low_one() -> None:
    assert narrow.of_pairs(np.array([[0x21, 0x43]], np.uint8)).tolist() == [[1, 2, 3, 4]]


@given(x=st.floats(width=32))
def test_a_scale_is_the_power_of_two_below_or_above(x: float) -> None:
    bits = np.array([x], np.float32).view(np.uint32)
    down, up = (int(scaled.pack_ue8m0(bits, bits, up=u, satfinite=True)[0]) for u in (False, True))
    if math.isnan(x):
        assert (down, up) == (0xFFFF, 0xFFFF)
        return
    size = abs(Fraction(x)) if math.isfinite(x) else Fraction(2) ** 200
    below = floor_log2(size) + 127 if size else 0
    above = below + (size > 0 and Fraction(2) ** (below - 127) != size)
    assert down == min(max(below, 0), 254) * 0x0101
    assert up == min(max(above, 0), 254) * 0x0101


def test_every_scale_widens_to_its_value() -> None:
    codes = np.arange(256, dtype=np.uint16)
    halves = scaled.unpack_ue8m0(codes << np.uint16(8))
    values = (halves & np.uint32(0xFFFF0000)).view(np.float32)
    assert np.isnan(values[255])
    assert values[:255].tolist() == [2.0 ** (code - 127) for code in range(255)]
