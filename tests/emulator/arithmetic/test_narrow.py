"""Floats of four and six bits against their definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from definition import SHAPES, narrow_value
from hypothesis import given
from hypothesis import strategies as st

from warpsim.arithmetic import narrow


def nearest(x: float, kind: str) -> int:
    """The code of the nearest number, the even one of two; beyond the largest, that."""
    codes = range(1 << sum(SHAPES[kind][:2]))
    size = abs(Fraction(x))
    code = min(codes, key=lambda c: (abs(narrow_value(c, kind) - size), c % 2))
    return code | (len(codes) if np.signbit(x) else 0)


floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-32, 32, width=32),
    st.integers(-1024, 1024).map(lambda n: n / 32),
)


@pytest.mark.parametrize("kind", SHAPES)
@given(high=floats, low=floats)
def test_a_pair_is_rounded_to_the_nearest_codes(kind: str, high: float, low: float) -> None:
    bits = [np.array([x], np.float32).view(np.uint32) for x in (high, low)]
    shift = 4 if kind == "e2m1" else 8
    packed = int(narrow.pack(*bits, kind, relu=False)[0])
    assert packed == nearest(high, kind) << shift | nearest(low, kind)


@pytest.mark.parametrize("kind", SHAPES)
def test_every_code_widens_to_its_value(kind: str) -> None:
    width = 4 if kind == "e2m1" else 6
    sign, dtype = 1 << width - 1, np.uint8 if kind == "e2m1" else np.uint16
    codes = np.arange(1 << width, dtype=dtype)
    halves = narrow.unpack(codes, kind, relu=False).view(np.float16).reshape(-1, 2)[:, 0]
    want = [float(narrow_value(int(c) % sign, kind)) * (-1 if c & sign else 1) for c in codes]
    assert halves.tolist() == want


@pytest.mark.parametrize("kind", SHAPES)
def test_nan_becomes_the_largest_number_and_relu_clears_the_negative(kind: str) -> None:
    nan, minus = (np.array([x], np.float32).view(np.uint32) for x in (np.nan, -2.0))
    largest = (1 << sum(SHAPES[kind][:2])) - 1
    shift = 4 if kind == "e2m1" else 8
    assert int(narrow.pack(minus, nan, kind, relu=True)[0]) == largest
    assert int(narrow.pack(nan, minus, kind, relu=True)[0]) == largest << shift
