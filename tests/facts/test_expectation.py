"""What an expectation means: signs are changes, percent are shares, the rest are values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.facts.expectation import parse


@pytest.mark.parametrize(
    ("text", "of", "met", "missed"),
    [
        ("-30%", "change", [-0.3, -0.9], [-0.29, 0.3]),
        ("+30%", "change", [0.3, 2.0], [0.29, -0.3]),
        ("~-30%", "change", [-0.3, -0.23, -0.37], [-0.22, -0.38]),
        ("~+8%", "change", [0.08, 0.061, 0.099], [0.0395, 0.101]),
        (">= +5%", "change", [0.05, 1.0], [0.049]),
        ("> +5%", "change", [0.051], [0.05]),
        ("-3%..+1%", "change", [-0.03, 0.0, 0.01], [-0.031, 0.011]),
        ("0%..+5%", "change", [0.0, 0.05], [-0.001]),
        ("+4", "difference", [4, 5], [3, -4]),
        ("-2", "difference", [-2, -3], [-1]),
        ("~+4", "difference", [3, 5], [2, 6]),
        ("+0.1..+0.3", "difference", [0.1, 0.3], [0.31]),
        ("< 4096", "value", [4095], [4096]),
        ("<=4096", "value", [4096], [4097]),
        ("== 0", "value", [0], [1]),
        ("!= 0", "value", [1, -1], [0]),
        ("16..32", "value", [16, 32], [15, 33]),
        ("~100", "value", [75, 125], [74, 126]),
        ("unchanged", "difference", [0], [1]),
    ],
)
def test_what_meets_an_expectation_and_what_does_not(
    text: str, of: str, met: list[float], missed: list[float]
) -> None:
    expectation = parse(text)
    assert expectation.basis == of
    assert all(expectation.is_met(value) for value in met)
    assert not any(expectation.is_met(value) for value in missed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("faster", "is not an expectation: write a change"),
        ("4096", "may be a value or a change: write '== 4096' or '+4096'"),
        ("30%", "a change has a sign"),
        (">= 5%", "a change has a sign"),
        ("+0%", "has no direction"),
        ("-10%..-30%", "write the lower end first"),
        ("-10%..+4", "both ends are values, or both are changes of one kind"),
        ("16..+32", "both ends are values, or both are changes of one kind"),
        ("1e999", "is too large"),
        ("", "is not an expectation"),
        ("\u221230%", "its '\u2212' is not the minus sign of a keyboard"),
        ("+\u0663%", "is not an expectation"),
        ("9" * 5000, "is too large"),
    ],
)
def test_what_is_no_expectation_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse(text)


@given(st.floats(0.5, 1000), st.sampled_from("+-"))
def test_about_holds_within_a_quarter_on_both_sides(size: float, sign: str) -> None:
    written = f"~{sign}{size:.3f}%"
    expected = float(f"{sign}{size:.3f}") / 100
    expectation = parse(written)
    assert expectation.is_met(expected * 1.249)
    assert expectation.is_met(expected * 0.751)
    assert not expectation.is_met(expected * 1.26)
    assert not expectation.is_met(expected * 0.74)


@given(st.text(max_size=20))
def test_any_text_is_an_expectation_or_refused(text: str) -> None:
    try:
        expectation = parse(text)
    except ValueError:
        return
    assert expectation.low <= expectation.high


@given(st.floats(-10, 10), st.sampled_from(["-30%", "~+8%", "-3%..+1%", ">= +5%"]))
def test_what_misses_an_end_says_by_how_much(actual: float, text: str) -> None:
    expectation = parse(text)
    by = expectation.misses_by(actual)
    assert (by == 0) == expectation.is_met(actual)
    assert min(expectation.misses_by(actual - by), expectation.misses_by(actual + by)) < 1e-9
