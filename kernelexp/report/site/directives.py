"""Decides the condition of an #if from known defines."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Mapping

from simpleeval import InvalidExpression, SimpleEval

_LONGEST = 1000
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|\s(\w+))")
_LONG = re.compile(r"\b(0[xX][\da-fA-F]+|\d+)[lL]+\b")
# C's `!` binds as tightly as Python's `~`, and `not` does not.
_NOT = re.compile(r"!(?!=)")


def decide(word: str, condition: str, defines: Mapping[str, str]) -> bool | None:
    """Whether the condition after `word`, one of if, ifdef, ifndef, holds; None where it asks for
    more than the defines."""
    condition = condition.split("//")[0].strip()
    if word in ("ifdef", "ifndef"):
        return (word == "ifdef") if condition in defines else None
    if len(condition) > _LONGEST:
        return None
    # A name that no define has may be defined anywhere.
    text = _DEFINED.sub(lambda m: "1" if (m[1] or m[2]) in defines else "unknown_", condition)
    text = _LONG.sub(r"\1", text)
    text = _NOT.sub("~", text).replace("&&", " and ").replace("||", " or ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval").body
        return bool(_evaluator(defines).eval(text, previously_parsed=tree)) if _is_c(tree) else None
    except (InvalidExpression, SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _is_c(tree: ast.expr) -> bool:
    """Whether C gives the expression the meaning that Python does.

    C does not chain `a < b < c`, and an #if has no numbers but integers.
    """
    return not any(
        (isinstance(node, ast.Compare) and len(node.ops) > 1)
        or (isinstance(node, ast.Constant) and type(node.value) is not int)
        for node in ast.walk(tree)
    )


def _evaluator(defines: Mapping[str, str]) -> SimpleEval:
    names = {}
    for name, value in defines.items():
        try:
            names[name] = int(value, 0)
        except ValueError:
            continue  # text, or an unsigned number, which compares otherwise
    evaluator = SimpleEval(operators=_OPERATORS, functions={}, names=names)
    own = evaluator.nodes[ast.BoolOp]
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in _NODES}
    evaluator.nodes[ast.BoolOp] = lambda node: int(bool(own(node)))  # C's && is 0 or 1
    return evaluator


def _divide(a: int, b: int) -> int:
    """Towards zero, as C++ does."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_NODES = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Constant)
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.Mod: lambda a, b: a - b * _divide(a, b),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Invert: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
