from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from definition import exponent, is_special, to_f32, truncated, value
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelexp.evidence import native
from warpsim import compiled
from warpsim.arithmetic import tensor
from warpsim.arithmetic.formats import BF16, E4M3, E5M2, F16, F32, Format

FORMATS: dict[str, Format] = {"e4m3": E4M3, "e5m2": E5M2, "f16": F16, "bf16": BF16}
PRECISIONS = {"F=25": tensor.TCGEN05, "F=13": tensor.WGMMA_FP8}


@pytest.fixture(
    scope="module", autouse=True, params=["NumPy", pytest.param("compiled", marks=pytest.mark.slow)]
)
def arithmetic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Every test of this module holds for both."""
    if request.param == "compiled":
        library = native.library(tmp_path_factory.mktemp("native"))
        assert library, "the tests need a host compiler, as nvcc does"
        compiled.load(Path(library))
    yield
    compiled.unload()


def dot(a: list[int], b: list[int], c: int, fmt: Format, precision: tensor.Precision) -> int:
    """The fused sum, term by term, on fractions; finite operands."""
    terms = [(value(x, fmt) * value(y, fmt), exponent(x, fmt) + exponent(y, fmt))
             for x, y in zip(a, b, strict=True)]  # fmt: skip
    terms.append((value(c, F32), exponent(c, F32)))
    terms = [(term, power) for term, power in terms if term != 0]
    if not terms:
        return 0
    unit = Fraction(2) ** (max(power for _, power in terms) - precision.fraction_bits)
    total = sum((truncated(term, unit) for term, _ in terms), Fraction(0))
    return to_f32(total, precision.output_bits)


def finite(fmt: Format) -> st.SearchStrategy[int]:
    any_ = st.integers(0, fmt.max_finite)
    small = st.integers(0, 2 << (fmt.precision - 1))
    one = (1 - fmt.min_exponent) << (fmt.precision - 1)
    middling = st.integers(one - (3 << fmt.precision), one + (3 << fmt.precision))
    magnitude = st.one_of(any_, small, middling, middling)
    return st.builds(lambda m, s: m | s * fmt.sign, magnitude, st.integers(0, 1))


def rows(fmt: Format, count: int, k: int) -> st.SearchStrategy[list[list[int]]]:
    row = st.lists(finite(fmt), min_size=k, max_size=k)
    return st.lists(row, min_size=count, max_size=count)


@pytest.mark.parametrize("name", PRECISIONS)
@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_product_is_the_aligned_and_truncated_sum(name: str, kind: str, data) -> None:  # type: ignore[no-untyped-def]
    fmt, precision = FORMATS[kind], PRECISIONS[name]
    k = 32 if fmt.bits == 8 else 16
    a, b, c = data.draw(rows(fmt, 2, k)), data.draw(rows(fmt, 3, k)), data.draw(rows(F32, 2, 3))
    if data.draw(st.booleans()):
        cancel(a, b, fmt)
    got = tensor.mma(
        np.array(a, fmt.dtype), np.array(b, fmt.dtype), np.array(c, np.uint32),
        a_type=kind, precision=precision,
    )  # fmt: skip
    for i in range(2):
        for j in range(3):
            assert int(got[i, j]) == dot(a[i], b[j], c[i][j], fmt, precision)


def cancel(a: list[list[int]], b: list[list[int]], fmt: Format) -> None:
    """Pairs of products that annihilate each other."""
    for row in a:
        row[1::2] = row[::2]
    for row in b:
        row[1::2] = [x ^ fmt.sign for x in row[::2]]


@pytest.mark.parametrize("name", PRECISIONS)
def test_large_matrices_agree_with_small_ones(name: str) -> None:
    """The matrix product, the pass over all terms and the gathered elements are one function."""
    random = np.random.default_rng(5)
    codes = random.integers(0, 0x7F, (160, 32)).astype(np.uint8)
    codes[::3] = random.integers(0x30, 0x40, (54, 32))  # rows that lose nothing to alignment
    a, b = codes[:96], codes[96:]
    c = random.standard_normal((96, 64)).astype(np.float32).view(np.uint32)
    whole = tensor.mma(a, b, c, a_type="e4m3", precision=PRECISIONS[name])
    for i in range(0, 96, 7):
        part = tensor.mma(a[i : i + 1], b, c[i : i + 1], a_type="e4m3", precision=PRECISIONS[name])
        assert np.array_equal(whole[i], part[0])


def test_a_row_of_zeros_is_zero_among_rows_that_are_truncated() -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 0x7F, (8, 32)).astype(np.uint8) for _ in range(2))
    a[3] = 0
    got = tensor.mma(a, b, None, a_type="e4m3", precision=tensor.WGMMA_FP8)
    assert not got[3].any()
    assert np.isfinite(got.view(np.float32)).all()


def test_hoppers_fp8_product_drops_the_low_ten_bits_of_c() -> None:
    zeros, c = np.zeros((1, 32), np.uint8), np.array([[0x3F800FFF]], np.uint32)
    got = tensor.mma(zeros, zeros, c, a_type="e4m3", precision=tensor.WGMMA_FP8)
    assert int(got[0, 0]) == 0x3F800C00


@pytest.mark.parametrize(
    ("a", "b", "c", "wanted"),
    [
        (0x7F80, 0x3F80, 0x3F800000, 0x7F800000),  # inf * 1
        (0x7F80, 0x0000, 0x3F800000, 0x7FFFFFFF),  # inf * 0
        (0x7F80, 0x3F80, 0xFF800000, 0x7FFFFFFF),  # inf - inf
        (0x7FC1, 0x3F80, 0x3F800000, 0x7FFFFFFF),
        (0x3F80, 0x3F80, 0x7FC12345, 0x7FFFFFFF),
        (0x7F7F, 0x7F7F, 0x00000000, 0x7F800000),  # past the largest finite value
        (0x8000, 0x3F80, 0x80000000, 0x00000000),  # zeros: always positive
    ],
)
def test_special_values_of_a_product(a: int, b: int, c: int, wanted: int) -> None:
    left, right = np.zeros((1, 16), np.uint16), np.zeros((1, 16), np.uint16)
    left[0, 3], right[0, 3] = a, b
    addend = np.array([[c]], np.uint32)
    got = tensor.mma(left, right, addend, a_type="bf16", precision=tensor.WGMMA)
    assert int(got[0, 0]) == wanted


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_product_in_f16_rounds_the_sum_to_nearest(data) -> None:  # type: ignore[no-untyped-def]
    small = st.integers(0, 40).map(lambda n: int(np.float16(n / 8).view(np.uint16)))
    a, b = (data.draw(st.lists(small, min_size=16, max_size=16)) for _ in range(2))
    got = tensor.mma_f16(
        np.array([a], np.uint16), np.array([b], np.uint16), None,
        a_type="f16", precision=tensor.WGMMA,
    )  # fmt: skip
    exact = sum(value(x, F16) * value(y, F16) for x, y in zip(a, b, strict=True))
    assert not is_special(exact)
    assert got.view(np.float16)[0, 0] == np.float16(float(exact))


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_bytes_multiply_exactly_and_wrap(data) -> None:  # type: ignore[no-untyped-def]
    byte, word = st.integers(0, 255), st.integers(0, 2**32 - 1)
    a, b = (data.draw(st.lists(byte, min_size=32, max_size=32)) for _ in range(2))
    c = data.draw(word)
    signed = data.draw(st.booleans())
    got = tensor.mma_int8(
        np.array([a], np.uint8), np.array([b], np.uint8), np.array([[c]], np.uint32),
        a_signed=signed, b_signed=False,
    )  # fmt: skip
    left = [x - 256 if signed and x > 127 else x for x in a]
    assert int(got[0, 0]) == (sum(x * y for x, y in zip(left, b, strict=True)) + c) % 2**32
