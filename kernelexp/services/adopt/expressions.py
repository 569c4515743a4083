"""Expressions that people write about a kernel: extents in names of integers, and references."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Mapping

from kernelexp.model.errors import UsageError, suggest


def parse_expressions(text: str) -> tuple[str, ...]:
    """`M/64,N/64,1` as its parts; UsageError where one is not arithmetic of names."""
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        try:
            tree = ast.parse(part, mode="eval")
        except SyntaxError:
            raise UsageError(f"{text!r}: {part!r} is not an expression.") from None
        for node in ast.walk(tree.body):
            if not isinstance(node, _ARITHMETIC):
                raise UsageError(
                    f"{text!r}: {part!r} should be made of numbers, names of integer "
                    "parameters and + - * / ( )."
                )
    return parts


def parse_reference(text: str) -> str:
    """The text of a reference; UsageError where it is not a Python expression."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        words = [word for word in re.findall(r"\w+", text) if keyword.iskeyword(word)]
        hint = f" A parameter named {words[0]} is {words[0]}_ there." if words else ""
        raise UsageError(f"{text!r} is not a Python expression, as a reference.{hint}") from None
    return text


_ARITHMETIC = (
    *(ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.USub),
)


def names_in(texts: Iterable[str]) -> set[str]:
    """The names that occur in expressions."""
    nodes = (node for text in texts for node in ast.walk(ast.parse(text, mode="eval")))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def free_names(text: str) -> set[str]:
    """The names that an expression takes from outside, builtins left out."""
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names_in([text]) - own - vars(builtins).keys()


class _Spelled(ast.NodeTransformer):
    """Names as entries of `size` and `axes`, quotients rounded up."""

    def __init__(self, where: str, sizes: Collection[str], axes: Collection[str]) -> None:
        self._where, self._sizes, self._axes = where, sizes, axes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in (*self._sizes, *self._axes):
            known = suggest(node.id, sorted((*self._sizes, *self._axes))).rstrip("?")
            role = "integer parameter or axis" if self._axes else "integer parameter"
            raise UsageError(
                f"{self._where}: {node.id!r} is not an {role}{known}. A size of your own has a "
                f"value: --value {node.id}=..."
            )
        owner = "axes" if node.id in self._axes else "size"
        return ast.parse(f'{owner}["{node.id}"]', mode="eval").body

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        if not isinstance(node.op, ast.Div):
            return ast.BinOp(left, node.op, right)
        down = ast.BinOp(ast.UnaryOp(ast.USub(), left), ast.FloorDiv(), right)
        return ast.UnaryOp(ast.USub(), down)


def of_size(expression: str, role: str, sizes: Collection[str], axes: Collection[str] = ()) -> str:
    """An extent in terms of `size` and `axes`, as problem.py has it; UsageError, which says what it
    is an extent of, for a name that is not among these."""
    spelled = _Spelled(f"{role} {expression!r}", sizes, axes)
    tree = spelled.visit(ast.parse(expression, mode="eval").body)
    return ast.unparse(ast.fix_missing_locations(tree)).replace("'", '"')


def value_of(
    expression: str, role: str, sizes: Mapping[str, int | float], axes: Mapping[str, int]
) -> int:
    """What an extent is; UsageError as in of_size(), and where it divides by 0."""
    text = of_size(expression, role, sizes, axes)
    try:
        return int(eval(text, {"__builtins__": {}}, {"size": sizes, "axes": axes}))
    except ZeroDivisionError:
        raise UsageError(f"{role} {expression!r} divides by 0.") from None
