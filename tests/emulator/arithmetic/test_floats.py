from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from definition import is_special, rounded, value
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.arithmetic import bf16, f16, f32, f64
from warpsim.arithmetic.floats import Float

KINDS = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64}
ROUNDINGS = ("rn", "rz", "rm", "rp")
some = settings(max_examples=15, deadline=None)


def patterns(number: Float) -> st.SearchStrategy[int]:
    """Any pattern, and more often those near the format's edges."""
    fmt = number.format
    one = (1 - fmt.min_exponent) << (fmt.precision - 1)
    near = st.sampled_from([0, 1 << (fmt.precision - 1), one, fmt.max_finite])
    edges = st.builds(lambda base, step: (base + step) % fmt.sign, near, st.integers(-3, 3))
    signed = st.builds(lambda pattern, sign: pattern | sign * fmt.sign, edges, st.integers(0, 1))
    close = st.builds(lambda step, sign: (one + step) | sign * fmt.sign,
                      st.integers(0, 1 << fmt.precision), st.integers(0, 1))  # fmt: skip
    return st.one_of(st.integers(0, 2 * fmt.sign - 1), signed, close)


def triples(number: Float) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    one = patterns(number)
    return st.lists(st.tuples(one, one, one), min_size=1, max_size=12)


def columns(number: Float, rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    return [np.array(column, number.format.dtype) for column in zip(*rows, strict=True)]


def by_definition(number: Float, rounding: str, exact, *operands: int) -> int | None:  # type: ignore[no-untyped-def]
    """The result of a finite operation that isn't zero; None where IEEE's special cases rule."""
    values = [value(operand, number.format) for operand in operands]
    if is_special(*values):
        return None
    result = exact(*values)
    return None if result is None or result == 0 else rounded(result, number.format, rounding)


OPERATIONS = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b, c: a / b if b else None,
}


def computed(number: Float, name: str, rounding: str, a, b, c) -> list[int]:  # type: ignore[no-untyped-def]
    operands = (a, b, c) if name == "fma" else (a, b)
    return [int(x) for x in getattr(number, name)(*operands, rounding=rounding)]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "f64")) for kind in KINDS]
)
@pytest.mark.parametrize("name", OPERATIONS)
@some
@given(data=st.data())
def test_an_operation_is_the_exact_value_rounded_once(kind: str, name: str, data) -> None:  # type: ignore[no-untyped-def]
    number = KINDS[kind]
    rows = data.draw(triples(number))
    a, b, c = columns(number, rows)
    for rounding in ROUNDINGS if kind in ("f32", "f64") else ("rn",):
        got = computed(number, name, rounding, a, b, c)
        for row, result in zip(rows, got, strict=True):
            wanted = by_definition(number, rounding, OPERATIONS[name], *row)
            assert wanted is None or result == wanted, (rounding, [hex(x) for x in row])


@pytest.mark.parametrize("kind", ["f32", "f64"])
@some
@given(data=st.data())
def test_a_square_root_is_rounded_once(kind: str, data) -> None:  # type: ignore[no-untyped-def]
    number = KINDS[kind]
    pattern = data.draw(patterns(number)) % number.format.sign
    exact = value(pattern, number.format)
    if is_special(exact):
        return
    for rounding in ROUNDINGS:
        result = int(number.sqrt(np.array([pattern], number.format.dtype), rounding=rounding)[0])
        root = value(result, number.format)
        below, above = (neighbour(result, step, number) for step in (-1, 1))
        assert root**2 == exact or below**2 < exact < above**2
        if rounding in ("rz", "rm"):
            assert root**2 <= exact
        if rounding == "rp":
            assert root**2 >= exact
        if rounding == "rn":
            assert ((below + root) / 2) ** 2 <= exact <= ((root + above) / 2) ** 2


def neighbour(pattern: int, step: int, number: Float) -> Fraction:
    result = value(max(pattern + step, 0), number.format)
    assert isinstance(result, Fraction)
    return result


@some
@given(st.data())
def test_special_results_are_of_the_class_that_ieee_arithmetic_gives(data) -> None:  # type: ignore[no-untyped-def]
    rows = data.draw(triples(f32))
    a, b, c = columns(f32, rows)
    with np.errstate(all="ignore"):
        x, y, z = (column.view(np.float32).astype(np.float64) for column in (a, b, c))
        wanted = {"add": x + y, "mul": x * y, "fma": x * y + z, "div": x / y}
    for name, results in wanted.items():
        for result, true in zip(computed(f32, name, "rn", a, b, c), results, strict=True):
            assert (result == 0x7FFFFFFF) == math.isnan(true)
            if math.isinf(true):
                assert result == (0x7F800000 if true > 0 else 0xFF800000)


@pytest.mark.parametrize(("rounding", "wanted"), [("rn", 0), ("rz", 0), ("rp", 0), ("rm", 1 << 31)])
def test_a_sum_that_cancels_is_a_negative_zero_only_when_rounding_down(
    rounding: str, wanted: int
) -> None:
    one, minus_one = np.array([0x3F800000], np.uint32), np.array([0xBF800000], np.uint32)
    assert f32.add(one, minus_one, rounding=rounding)[0] == wanted


def test_a_fused_multiply_add_keeps_what_two_roundings_lose() -> None:
    a = np.array([1.0 + 2.0**-12], np.float32).view(np.uint32)
    c = np.array([-(1.0 + 2.0**-11)], np.float32).view(np.uint32)
    assert f32.fma(a, a, c).view(np.float32)[0] == 2.0**-24


def test_a_sum_that_float64_rounds_to_a_midpoint_is_still_rounded_once() -> None:
    # a * b = 2**-24 * (1 - 2**-40): with c a little below a tie, which float64 can't tell from it.
    a, b, c = (
        np.array([x], np.float32).view(np.uint32)
        for x in (2.0**-12 * (1 + 2.0**-20), 2.0**-12 * (1 - 2.0**-20), 1 + 2.0**-23)
    )
    assert f32.fma(a, b, c).view(np.float32)[0] == 1 + 2.0**-23


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (0x00800000, 0x3F7FFFFF, 0x00000000),  # 2**-126 * (1 - 2**-24): subnormal, flushed
        (0x80800000, 0x3F7FFFFF, 0x80000000),
        (0x00000001, 0x3F800000, 0x00000000),
        (0x00800000, 0x3F800000, 0x00800000),
    ],
)
def test_ftz_flushes_operands_and_results_to_zeros_of_their_sign(
    a: int, b: int, wanted: int
) -> None:
    got = f32.mul(np.array([a], np.uint32), np.array([b], np.uint32), ftz=True)
    assert int(got[0]) == wanted


def test_ftz_keeps_what_rounds_up_to_the_smallest_normal_number() -> None:
    tiny, minus = np.array([0x00800000], np.uint32), np.array([0x80800000], np.uint32)
    assert f32.fma(tiny, minus, tiny, ftz=True)[0] == 0x00800000


@pytest.mark.parametrize(("a", "wanted"), [(-3.0, 0.0), (0.25, 0.25), (7.0, 1.0), (np.nan, 0.0)])
def test_saturation_clamps_to_zero_and_one_and_turns_nan_to_zero(a: float, wanted: float) -> None:
    pattern = np.array([a], np.float32).view(np.uint32)
    got = f32.add(pattern, np.zeros(1, np.uint32), sat=True).view(np.float32)[0]
    assert got == wanted
    assert not np.signbit(got)


NAN, ONE, ZERO, MINUS_ZERO = 0x7FC00001, 0x3F800000, 0, 0x80000000


@pytest.mark.parametrize(
    ("a", "b", "least", "greatest"),
    [
        (NAN, ONE, ONE, ONE),
        (ONE, NAN, ONE, ONE),
        (NAN, NAN, 0x7FFFFFFF, 0x7FFFFFFF),
        (ZERO, MINUS_ZERO, MINUS_ZERO, ZERO),
        (MINUS_ZERO, ZERO, MINUS_ZERO, ZERO),
        (0xFF800000, ONE, 0xFF800000, ONE),
    ],
)
def test_min_and_max_prefer_numbers_to_nan_and_order_the_zeros(
    a: int, b: int, least: int, greatest: int
) -> None:
    x, y = np.array([a], np.uint32), np.array([b], np.uint32)
    assert (int(f32.minimum(x, y)[0]), int(f32.maximum(x, y)[0])) == (least, greatest)


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_min_and_max_of_numbers_are_the_lesser_and_the_greater(a: int, b: int) -> None:
    x, y = value(a, bf16.format), value(b, bf16.format)
    if math.isnan(x) or math.isnan(y) or x == y:
        return
    least = int(bf16.minimum(np.array([a], np.uint16), np.array([b], np.uint16))[0])
    greatest = int(bf16.maximum(np.array([a], np.uint16), np.array([b], np.uint16))[0])
    assert (least, greatest) == ((a, b) if x < y else (b, a))


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_ordered_comparisons_are_false_on_nan_and_unordered_ones_true(op: str) -> None:
    a, b = np.array([NAN], np.uint32), np.array([ONE], np.uint32)
    assert not f32.compare(a, b, op)[0]
    assert f32.compare(a, b, op + "u")[0]


def test_a_double_nan_operand_keeps_its_payload_and_an_invalid_operation_makes_its_own() -> None:
    payload, infinity = (
        np.array([0xFFF0000000000123], np.uint64),
        np.array([0x7FF << 52], np.uint64),
    )
    one = np.array([0x3FF << 52], np.uint64)
    assert int(f64.add(payload, one)[0]) == 0xFFF8000000000123
    assert int(f64.mul(np.zeros(1, np.uint64), infinity)[0]) == 0xFFF8000000000000
