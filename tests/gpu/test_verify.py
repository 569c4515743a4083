"""Outputs against a reference, element by element; torch on the CPU compares as on a GPU."""

import pytest
import torch

from kernelexp.errors import ConfigurationError
from kernelexp.gpu.verify import Reference, compare, describe
from kernelexp.problem import Chunk, Tolerance

TOLERANCE = Tolerance(rtol=0.01, atol=0.1, why="a test")


def chunks(values, size=2):
    for first in range(0, len(values), size):
        yield Chunk(array="y", first=first, values=values[first : first + size].double())


def check(got, want, tolerance=TOLERANCE):
    (found,) = compare({"y": got}, chunks(want), tolerance)
    return found


@pytest.mark.parametrize(
    ("got", "wrong", "worst"),
    [
        ([10.0, -10.0, 0.0], 0, 0.0),
        ([10.1, -10.0, 0.05], 0, 0.5),
        ([10.3, -10.0, 0.0], 1, 1.5),
        ([10.0, 10.0, 0.0], 1, 100.0),
        ([10.0, -10.0, float("nan")], 1, 1e30),
        ([float("inf"), float("-inf"), 0.0], 2, 1e30),
    ],
)
def test_an_element_is_right_within_atol_plus_rtol_of_what_is_wanted(got, wrong, worst):
    found = check(torch.tensor(got).reshape(3, 1), torch.tensor([[10.0], [-10.0], [0.0]]))
    assert (found.elements, found.wrong) == (3, wrong)
    assert found.worst == pytest.approx(worst, rel=1e-5)


def test_without_tolerance_only_equality_is_right():
    exact = Tolerance(rtol=0.0, atol=0.0, why="bits")
    want = torch.tensor([[1.0], [0.0]])
    assert check(want.clone(), want, exact).wrong == 0
    assert check(want + 1e-7, want, exact).wrong == 2


def test_infinity_where_infinity_is_wanted_is_right():
    want = torch.tensor([[float("inf")]])
    assert check(want.clone(), want).wrong == 0


def test_a_reference_that_leaves_elements_out_is_refused():
    got = torch.zeros(4, 1)
    with pytest.raises(ConfigurationError, match="gives 2 elements of y, which has 4"):
        compare({"y": got}, chunks(torch.zeros(2, 1)), TOLERANCE)


def test_every_array_is_held_against_its_own_chunks():
    outputs = {"y": torch.ones(2, 1), "z": torch.zeros(2)}
    wanted = [
        Chunk(array="z", first=0, values=torch.ones(2).double()),
        *chunks(torch.ones(2, 1)),
    ]
    found = compare(outputs, wanted, TOLERANCE)
    assert [(each.array, each.wrong) for each in found] == [("y", 0), ("z", 2)]
    assert describe(found) == (
        "2 of 2 elements of z differ from the reference, the worst by 9.09 times the tolerance"
    )


def test_right_arrays_need_no_sentence():
    assert describe(compare({"y": torch.ones(2, 1)}, chunks(torch.ones(2, 1)), TOLERANCE)) == ""


@pytest.mark.parametrize(("room", "kept"), [(1 << 20, 2), (40, None)])
def test_a_reference_is_kept_where_it_fits(room, kept):
    reference = Reference(chunks(torch.zeros(4, 2)), keep_bytes=room)
    assert (reference.chunks and len(reference.chunks)) == kept
