"""Formulas over named figures: arithmetic and comparisons of numbers, and nothing else.

A formula has + - * /, comparisons, `and`, `or`, `not`, `a if condition else b`, min, max and abs.
What cannot be worked out (a name without a value, a division by zero, a number beyond a float's
range) has no value: it is not known, and not a fault.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from simpleeval import SimpleEval

from kernelexp.model.errors import join, suggest
from kernelexp.model.text import quote

MAX_LENGTH = 500
MAX_DEPTH = 40

FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "max": max, "min": min}

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_NODES = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.And,
    ast.Or,
    ast.Load,
    *_OPERATORS,
)


class FormulaError(ValueError):
    """A formula that cannot be read; the message is a clause without a full stop."""


class Formula(msgspec.Struct, frozen=True):
    """A formula that can be read, and the names that it uses in their order."""

    text: str
    names: tuple[str, ...]
    tree: Any


def parse(text: str) -> Formula:
    """The formula of a text; FormulaError says what is wrong with it."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"a formula has at most {MAX_LENGTH} characters; this one has {len(text)}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"{quote(text)} is not a formula") from None
    names: dict[str, None] = {}
    for node, depth in _walk(tree):
        if depth > MAX_DEPTH:
            raise FormulaError(f"{quote(text)} is nested more than {MAX_DEPTH} levels deep")
        _check(node, text)
        if isinstance(node, ast.Name) and node.id not in FUNCTIONS:
            names[node.id] = None
    return Formula(text.strip(), tuple(names), tree)


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """All nodes from left to right with their depths, without recursion."""
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(list(ast.iter_child_nodes(node)))]


def _check(node: ast.AST, text: str) -> None:
    if not isinstance(node, _NODES):
        raise FormulaError(
            f"{quote(text)} has {_name(node)} in it; a formula has + - * /, comparisons, and, or, "
            f"not, if ... else, and the functions {join(FUNCTIONS)}"
        )
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
        raise FormulaError(f"{quote(text)} has {node.value!r:.40} in it, which is not a number")
    if isinstance(node, ast.Call):
        _check_call(node)


def _check_call(node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS:
        raise FormulaError(f"there is no function {quote(name)}{suggest(name, FUNCTIONS)}")
    few = len(node.args) != 1 if name == "abs" else len(node.args) < 2
    if few or node.keywords:
        raise FormulaError(f"{name} takes {'one value' if name == 'abs' else 'two or more values'}")


def _name(node: ast.AST) -> str:
    names: dict[type, str] = {
        ast.Attribute: "an attribute",
        ast.Pow: "a power",
        ast.Subscript: "a subscript",
    }
    return names.get(type(node), f"a {type(node).__name__}")


def evaluate(formula: Formula, values: Mapping[str, float]) -> float | None:
    """Its value; a comparison is 1 or 0. None where it is not known."""
    if not all(name in values for name in formula.names):
        return None
    evaluator = SimpleEval(operators=_OPERATORS, functions=FUNCTIONS, names=dict(values))
    evaluator.nodes = {node: do for node, do in evaluator.nodes.items() if node in _NODES}
    try:
        result = float(evaluator.eval(formula.text, previously_parsed=formula.tree))
    except (ZeroDivisionError, OverflowError):
        return None
    return result if math.isfinite(result) else None
