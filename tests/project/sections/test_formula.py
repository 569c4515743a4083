"""Formulas: what they compute, and what they refuse."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelexp.project.sections.formula import FormulaError, evaluate, parse

VALUES = {"a": 3.0, "b": -0.5, "zero": 0.0, "big": 1e308}


def _value(text: str) -> float | None:
    return evaluate(parse(text), VALUES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100 * a / (a + 1)", 75.0),
        ("max(a, b, 7) - abs(b)", 6.5),
        ("a > 2 and not b > 0", 1.0),
        ("1 if b >= 0 else 2", 2.0),
        ("0 < a < 2", 0.0),
    ],
)
def test_a_formula_has_the_value_that_its_text_says(text: str, value: float) -> None:
    assert _value(text) == value


@pytest.mark.parametrize("text", ["a / zero", "a + unknown", "big * 10", "1e999 - 1e999"])
def test_what_cannot_be_worked_out_is_not_known(text: str) -> None:
    assert _value(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.real", "an attribute"),
        ("9 ** 9 ** 9", "a power"),
        ("[1][0]", "a subscript"),
        ("'a' * 3", "not a number"),
        ("True", "not a number"),
        ("open(1)", "no function 'open'"),
        ("a.b(1)", "no function"),
        ("max(a)", "two or more values"),
        ("abs(a, b)", "one value"),
        ("max(*a)", "two or more values"),
        ("lambda: 1", "Lambda"),
        ("a +", "not a formula"),
        ("", "not a formula"),
        ("a = 1", "not a formula"),
        ("-" * 80 + "1", "40 levels"),
        ("1 +" * 300, "500 characters"),
        ("(" * 400 + "1" + ")" * 400, "500 characters"),
    ],
)
def test_what_is_no_arithmetic_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(FormulaError, match=words):
        parse(text)


def test_a_formula_lists_its_names_in_order() -> None:
    assert parse("max(b, a) + b / c").names == ("b", "a", "c")


_LEAVES = st.sampled_from(
    [("a", 3.0), ("b", -0.5), ("zero", 0.0), ("2", 2.0), ("0.25", 0.25), ("big", 1e308)]
)


def _combine(parts: tuple[tuple[str, float | None], str, tuple[str, float | None]]):  # type: ignore[no-untyped-def]
    (left, one), operation, (right, other) = parts
    text = f"({left} {operation} {right})"
    if one is None or other is None or (operation == "/" and other == 0):
        return text, None
    return text, {
        "+": lambda: one + other,
        "-": lambda: one - other,
        "*": lambda: one * other,
        "/": lambda: one / other,
        "<": lambda: float(one < other),
        ">=": lambda: float(one >= other),
    }[operation]()


_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "<", ">="]), inner).map(
        _combine
    ),
    max_leaves=12,
)


@given(_TREES)
def test_any_arithmetic_equals_pythons(tree: tuple[str, float | None]) -> None:
    text, expected = tree
    if expected is not None and not math.isfinite(expected):
        expected = None

    assert _value(text) == expected


@given(st.text(max_size=80) | st.text(alphabet="ab01()+-*/<>=.,[]{}'\" \\:ifelsnotrd", max_size=80))
@example("a if")
@example("1_0")
@example("0x_")
@example("\x00")
@example("1if a else 2")
@example("a\\\n+b")
def test_no_text_does_anything_but_have_a_value_or_a_reason(text: str) -> None:
    try:
        formula = parse(text)
    except FormulaError:
        return
    result = evaluate(formula, VALUES)

    assert result is None or math.isfinite(result)
