"""When two answers agree."""

from __future__ import annotations

import pytest
import torch

from kernelexp.services.tasks.formats.compare import Errors, disagreement

X = torch.tensor([1.0, 2.0, 3.0])


def differ(expected: object, actual: object, tolerance: float = 1e-4) -> str:
    return disagreement(expected, actual, tolerance, tolerance, Errors())


def test_what_is_within_the_tolerance_agrees() -> None:
    assert differ(X, X + 1e-5) == ""


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        (X.double(), "has type float64; the reference has float32"),
        (X[:1], "has shape (1,); the reference has (3,)"),
        ((X, X), "2 values came back where the reference gives 1"),
        (X * torch.nan, "3 of 3 elements of the result are wrong: [0] is nan, not 1"),
        (X * torch.inf, "[0] is inf, not 1"),
        (1.0, "is not a tensor but float"),
    ],
)
def test_what_differs_is_said(actual: object, words: str) -> None:
    assert words in differ(X, actual)


def test_a_nan_agrees_with_a_nan_only() -> None:
    holes = torch.tensor([1.0, torch.nan])
    assert differ(holes, holes) == ""
    assert differ(holes, torch.ones(2))


def test_zeros_are_wrong_where_all_values_are_below_the_absolute_tolerance() -> None:
    row = torch.softmax(torch.rand(16384), 0)
    assert float(row.max()) < 1e-3
    assert "16,384 of 16,384" in differ(row, torch.zeros_like(row), 1e-3)


def test_an_element_is_named_by_its_place() -> None:
    other = torch.zeros(4, 5)
    other[2, 3] = 1
    assert "[2, 3] is 1, not 0" in differ(torch.zeros(4, 5), other)
