"""Outputs against a reference, element by element; torch on the CPU compares as on a GPU."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.measure import results, tensors
from kernelexp.evidence.measure.results import compare
from kernelexp.judge.outputs import describe, describe_wrong
from kernelexp.model.arm import EmulatedEvidence
from kernelexp.model.measurement import WORST, ArrayCheck, ArrayResult
from kernelexp.model.problem import Array, Chunk, Tolerance
from warpsim.dtypes import TORCH_NAMES

TOLERANCE = Tolerance(rtol=0.01, atol=0.1, why="a test")
EXACT = Tolerance(rtol=0.0, atol=0.0, why="bits")
INF, NAN = math.inf, math.nan


def chunks(values, size=2):
    for first in range(0, len(values), size):
        yield Chunk(array="y", first=first, values=values[first : first + size].double())


def check(got, want, tolerance=TOLERANCE, poison=results.POISON):
    (result,) = compare({"y": got}, chunks(want), tolerance, poison)
    return result


def poisoned(*shape, dtype="f32"):
    return tensors.allocate({"y": Array(shape=shape, dtype=dtype)})["y"]


@pytest.mark.parametrize(
    ("got", "wrong", "worst"),
    [
        ([10.0, -10.0, 0.0], 0, 0.0),
        ([10.1, -10.0, 0.05], 0, 0.5),
        ([10.3, -10.0, 0.0], 1, 1.5),
        ([10.0, 10.0, 0.0], 1, 100.0),
        ([10.0, -10.0, NAN], 1, WORST),
        ([INF, -INF, 0.0], 2, WORST),
    ],
)
def test_an_element_is_right_within_atol_plus_rtol_of_what_is_wanted(got, wrong, worst):
    result = check(torch.tensor(got).reshape(3, 1), torch.tensor([[10.0], [-10.0], [0.0]]))
    assert (result.elements, result.wrong) == (3, wrong)
    assert result.worst == pytest.approx(worst, rel=1e-5)


def test_a_tolerance_of_the_rms_scales_with_the_values_of_a_chunk():
    tolerance = Tolerance(rtol=0.0, of_rms=0.1, why="a test")
    # Two chunks: 3 and 4 have a root mean square of 3.5, and the other's finite values have 0.
    want = torch.tensor([[3.0], [4.0], [INF], [0.0]])
    got = want + torch.tensor([[0.3], [-0.3], [0.0], [0.2]])
    for scale in (1e-9, 1.0, 1e9):
        result = check(got * scale, want * scale, tolerance)
        assert result.wrong == 1
        assert result.worst == WORST


def test_without_tolerance_only_equality_is_right():
    want = torch.tensor([[1.0], [0.0]])
    assert check(want.clone(), want, EXACT).wrong == 0
    assert check(want + 1e-7, want, EXACT).wrong == 2


@pytest.mark.parametrize("tolerance", [TOLERANCE, EXACT])
@pytest.mark.parametrize(
    ("got", "want", "right"),
    [
        (INF, INF, True),
        (-INF, -INF, True),
        (NAN, NAN, True),
        (-INF, INF, False),
        (5.0, INF, False),
        (INF, 5.0, False),
        (NAN, 5.0, False),
        (5.0, NAN, False),
        (NAN, INF, False),
    ],
)
def test_infinities_and_nans_are_right_where_they_are_wanted(got, want, right, tolerance):
    result = check(torch.tensor([[got]]), torch.tensor([[want]]), tolerance)
    assert result.wrong == (not right)
    msgspec.json.encode(result, order="deterministic")
    assert result.worst <= WORST
    assert result.frobenius <= WORST


@pytest.mark.parametrize("dtype", TORCH_NAMES)
def test_what_was_never_written_is_wrong_even_where_a_nan_is_wanted(dtype):
    got = poisoned(4, 2, dtype=dtype)
    want = torch.full((4, 2), 7.0 if tensors.is_integral(got.dtype) else NAN)
    result = check(got, want)
    elements = 16 if got.is_complex() else 8
    assert (result.elements, result.unwritten) == (elements, elements)
    assert result.where.startswith("never written; first y[0, 0")


@pytest.mark.parametrize("dtype", TORCH_NAMES)
def test_what_equals_the_reference_is_right_in_every_type(dtype):
    kind = tensors.torch_dtype(dtype)
    got = torch.tensor([[1.0], [0.0]]).to(kind)
    want = got if got.is_complex() else got.double()
    (result,) = compare({"y": got}, [Chunk(array="y", first=0, values=want)], EXACT)
    assert (result.wrong, result.worst) == (0, 0.0)


@pytest.mark.parametrize("dtype", ["s64", "u64"])
@given(st.integers(0, 2**63 - 1), st.integers(-3, 3))
def test_integers_of_64_bits_are_compared_exactly(dtype, value, off):
    want = torch.tensor([min(2**63 - 4, max(3, value))])
    got = (want + off).to(tensors.torch_dtype(dtype))
    (result,) = compare({"y": got}, [Chunk(array="y", first=0, values=want)], EXACT)
    assert result.wrong == (off != 0)


def test_the_parts_of_a_complex_number_are_compared_one_by_one():
    got = torch.tensor([1 + 2j, 3 - 4j])
    want = got.to(torch.complex128) + torch.tensor([0, 1j])
    (result,) = compare({"y": got}, [Chunk(array="y", first=0, values=want)], EXACT)
    assert (result.elements, result.wrong) == (4, 1)
    assert "y[1, 1]: got -4, want -3" in result.where


def test_integers_that_keep_the_byte_of_their_poison_were_never_written():
    got = torch.full((4,), 0x2A2A2A2A, dtype=torch.int32)
    assert check(got, torch.zeros(4), poison=0x2A).unwritten == 4
    assert check(got, torch.zeros(4), poison=0x2B).unwritten == 0


@pytest.mark.parametrize(
    ("kind", "got", "want", "words"),
    [
        (torch.int32, 16_777_217, 16_777_216.0, "got 16777217, want 16777216"),
        (torch.int64, 2**40 + 1, 2**40, "got 1099511627777, want 1099511627776"),
        (torch.int32, 3, 2.5, "got 3, want 2.5"),
    ],
)
def test_integers_are_shown_in_full(kind, got, want, words):
    result = check(torch.tensor([got], dtype=kind), torch.tensor([want]), EXACT)
    assert words in result.where


def test_rows_that_were_never_written_are_named():
    want = torch.full((128, 128), 0.731)
    got = poisoned(128, 128)
    got[:96] = want[:96]
    assert describe(check(got, want)) == (
        "4,096 of 16,384 elements of y are wrong: rows 96 to 127 never written; "
        "first y[96, 0]: never written, want 0.731"
    )


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (slice(None), slice(None), ""),
        (slice(3, 4), slice(None), "row 3"),
        (slice(None), slice(1, None, 4), "every 4th column from 1 to 29"),
        (slice(8, 16), slice(16, 24), "columns 16 to 23 of rows 8 to 15"),
        (slice(1, None, 2), slice(None), "every 2nd row from 1 to 15"),
    ],
)
def test_whole_rows_columns_tiles_and_stripes_are_named(rows, columns, words):
    want = torch.ones(16, 32)
    got = want.clone()
    got[rows, columns] = 3.5
    result = check(got, want, EXACT)
    assert result.where.partition("first y")[0].rstrip("; ") == words


def test_blocks_of_rows_are_named():
    want = torch.ones(32, 2)
    got = want.clone()
    got.view(4, 8, 2)[:, 4:] = 0.0
    assert check(got, want).where.startswith("4 of every 8 rows from 4 to 31; first y[4, 0]: got 0")


def test_scattered_elements_are_said_to_be_and_three_are_shown():
    want = torch.ones(64, 64)
    got = want.clone()
    got.view(-1)[torch.tensor([5, 700, 701, 3000])] = 2.0
    assert check(got, want).where == (
        "scattered over 3 rows and 4 columns; first y[0, 5]: got 2, want 1, "
        "y[10, 60]: got 2, want 1, y[10, 61]: got 2, want 1"
    )


def test_an_error_that_only_a_zero_makes_large_has_no_figure():
    result = check(torch.tensor([1.0]), torch.tensor([1e-20]), Tolerance(rtol=1e-3, atol=0, why=""))
    assert describe(result) == "1 of 1 element of y is wrong: first y[0]: got 1, want 1e-20"


def test_got_and_wanted_are_shown_with_the_digits_that_tell_them_apart():
    want = torch.tensor([[1.0]])
    assert "got 1.00000012, want 1" in check(want + 2**-23, want, EXACT).where


def test_pieces_are_compared_as_the_whole(monkeypatch):
    want = torch.arange(60.0).reshape(10, 6)
    got = want.clone()
    got[7, 2:] = -1.0
    whole = check(got, want)
    monkeypatch.setattr(results, "PIECE", 4)
    assert check(got, want) == whole
    assert "row 7" in whole.where


def test_every_array_is_compared_with_its_own_chunks():
    outputs = {"y": torch.ones(2, 1), "z": torch.zeros(2)}
    wanted = [Chunk(array="z", first=0, values=torch.ones(2).double()), *chunks(torch.ones(2, 1))]
    result = compare(outputs, wanted, TOLERANCE)
    assert [(item.name, item.wrong) for item in result] == [("y", 0), ("z", 2)]
    assert describe_wrong(result) == (
        "all 2 elements of z are wrong, the worst by 9.09 times the tolerance: "
        "first z[0]: got 0, want 1, z[1]: got 0, want 1"
    )


def test_right_arrays_need_no_sentence():
    assert describe_wrong(compare({"y": torch.ones(2)}, chunks(torch.ones(2)), EXACT)) == ""


def test_a_right_array_says_how_near_the_tolerance_it_came():
    result = check(torch.tensor([[10.1]]), torch.tensor([[10.0]]))
    assert describe(result) == (
        "1 element of y is right, the worst at 0.50 of the tolerance, relative error 1.0e-02"
    )


def test_no_sentence_has_a_figure_that_stands_for_infinity():
    result = check(poisoned(4, 4), torch.ones(4, 4))
    assert (result.worst, result.frobenius) == (WORST, WORST)
    assert "e+" not in describe(result)
    assert "0000" not in describe(result)


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=40),
    st.floats(0, 1),
    st.floats(0, 1e3),
)
def test_the_check_is_its_definition(pairs, rtol, atol):
    got, want = (torch.tensor(column).reshape(-1, 1) for column in zip(*pairs, strict=True))
    result = check(got, want, Tolerance(rtol=rtol, atol=atol, why="drawn"))

    def right(one, other):
        if math.isnan(other):
            return math.isnan(one)
        if math.isinf(other) or not math.isfinite(one):
            return one == other
        return abs(one - other) <= atol + rtol * abs(other)

    assert result.wrong == sum(not right(*pair) for pair in pairs)
    assert msgspec.json.decode(msgspec.json.encode(result), type=ArrayResult) == result


@pytest.mark.parametrize(
    ("want", "lax"),
    [
        ([0.1, -0.05], "zeros would be right too"),
        ([NAN, INF], "not one finite value is wanted"),
        ([0.1, 0.2], "half of each value would be right too"),
        ([1.0, 2.0], ""),
        ([3.0, 3.0], "a constant would be right too"),
        ([0.0, 0.0], "zeros would be right too"),
        ([1.0, INF, 2.0], ""),
    ],
)
def test_a_comparison_that_says_little_says_why(want, lax):
    wanted = torch.tensor(want).reshape(-1, 1)
    assert check(wanted.clone(), wanted).lax.partition(":")[0] == lax


def test_old_records_of_either_kind_are_still_read():
    measured = b'{"array":"y","elements":4,"wrong":1,"worst":2.5}'
    assert msgspec.json.decode(measured, type=ArrayCheck).name == "y"
    emulated = (
        b'{"size":"emulated","arrays":'
        b'[{"name":"y","elements":4,"wrong":0,"worst":0.0,"frobenius":0.0}]}'
    )
    assert msgspec.json.decode(emulated, type=EmulatedEvidence).arrays[0].name == "y"
    assert msgspec.json.encode(ArrayCheck(name="y", elements=1, wrong=0, worst=0.0)) == (
        b'{"array":"y","elements":1,"wrong":0,"worst":0.0}'
    )
