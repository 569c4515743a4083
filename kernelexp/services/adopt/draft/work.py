"""work() of a drafted problem.py: bytes by the shapes of arrays, FLOPs of the matrix products that
references have."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from kernelexp.services.adopt.answers import Answers
from kernelexp.services.adopt.entry import KernelParameter
from kernelexp.services.adopt.expressions import names_in, of_size
from warpsim.dtypes import SIZES

Shape: TypeAlias = tuple[str, ...]
"""Extents, as a person has written them."""


def work(
    outputs: Sequence[KernelParameter],
    given: Sequence[KernelParameter],
    answers: Answers,
    names: frozenset[str],
) -> str:
    """Nothing where a shape or a type is not known."""
    moved = [
        _bytes(parameter, answers.shapes, names)
        for parameter in (*_needed(outputs, given, answers), *outputs)
    ]
    known = [item for item in moved if item]
    if len(known) < len(moved):
        return ""
    products = _products(outputs, answers)
    flops = [f"2 * {_product(extents, names)}" for extents in products or ()]
    counted = " FLOPs of the reference's matrix products." if flops else ""
    return (
        "def work(size):\n"
        f"    # Each input read once, each output written once.{counted}\n"
        f"    return Work(\n        flops={' + '.join(flops) or '0'},\n"
        f"        bytes={' + '.join(known)},\n    )\n\n\n"
    )


def _needed(
    outputs: Sequence[KernelParameter], given: Sequence[KernelParameter], answers: Answers
) -> list[KernelParameter]:
    """The inputs that the result depends on: a kernel that reads back what it has written need not
    load what was there before, where its reference does without it."""
    read = names_in(answers.references.values())
    without = {output.name for output in outputs if output.name in answers.references.keys() - read}
    used = [value for value in given if value.read or value.written]
    return [value for value in used if value.name not in without]


def _bytes(array: KernelParameter, shapes: Mapping[str, Shape], names: frozenset[str]) -> str:
    if array.dtype is None or array.name not in shapes:
        return ""
    return f"{SIZES[array.dtype]} * {_product(shapes[array.name], names)}"


def _product(extents: Sequence[str], names: frozenset[str]) -> str:
    factors = [of_size(extent, "--shape", names) for extent in extents if extent != "1"]
    return " * ".join(factor if _is_factor(factor) else f"({factor})" for factor in factors) or "1"


def _is_factor(text: str) -> bool:
    return isinstance(ast.parse(text, mode="eval").body, ast.Constant | ast.Subscript)


def _products(outputs: Sequence[KernelParameter], answers: Answers) -> list[Shape] | None:
    """The extents over which each matrix product multiplies; None where one's are not known."""
    result: list[Shape] = []
    for output in outputs:
        text = answers.references.get(output.name)
        for extents in _iter_products(text, answers.shapes) if text else ():
            if extents is None:
                return None
            result.append(extents)
    return result


def _iter_products(text: str, shapes: Mapping[str, Shape]) -> Iterator[Shape | None]:
    for node in ast.walk(ast.parse(text, mode="eval")):
        pair = _factors(node)
        if pair is not None:
            yield _extents(*(_shape(item, shapes) for item in pair))
        elif isinstance(node, ast.Call) and _called(node) == "einsum":
            yield _einsum(node, shapes)


def _extents(left: Shape | None, right: Shape | None) -> Shape | None:
    if not left or not right:
        return None
    batch = left[:-2] if len(left) >= len(right) else right[:-2]
    return (*batch, *left[-2:], *right[-1:]) if len(right) > 1 else (*batch, *left[-2:])


def _factors(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if not isinstance(node, ast.Call) or _called(node) not in ("mm", "matmul", "bmm", "mv"):
        return None
    assert isinstance(node.func, ast.Attribute)
    operands = node.args if _is_torch(node.func.value) else [node.func.value, *node.args]
    return (operands[0], operands[1]) if len(operands) == 2 else None


def _einsum(node: ast.Call, shapes: Mapping[str, Shape]) -> Shape | None:
    equation = node.args[0] if node.args else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        return None
    letters: dict[str, str] = {}
    for term, operand in zip(equation.value.split("->")[0].split(","), node.args[1:], strict=False):
        shape, word = _shape(operand, shapes), term.strip()
        if shape is None or len(shape) != len(word):
            return None
        letters |= dict(zip(word, shape, strict=True))
    return tuple(letters.values())


_KEEPS = ("double", "float", "half", "long", "contiguous", "clone", "abs", "exp", "relu", "sqrt")
"""Methods and functions whose result has its argument's shape."""


def _shape(node: ast.expr, shapes: Mapping[str, Shape]) -> Shape | None:
    """Returns the shape of an expression; None where it is not known."""
    if isinstance(node, ast.Constant):
        return ()
    if isinstance(node, ast.Name):
        return shapes.get(node.id, ())
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return _swapped(_shape(node.value, shapes))
    if (pair := _factors(node)) is not None:
        extents = _extents(*(_shape(item, shapes) for item in pair))
        right = _shape(pair[1], shapes)
        if extents is None or right is None:
            return None
        return (*extents[:-2], extents[-1]) if len(right) > 1 else extents[:-1]
    if isinstance(node, ast.BinOp):
        sides = [_shape(item, shapes) for item in (node.left, node.right)]
        known = [side for side in sides if side is not None]
        return max(known, key=len) if len(known) == 2 else None
    if isinstance(node, ast.UnaryOp):
        return _shape(node.operand, shapes)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        own = node.args[0] if _is_torch(node.func.value) and node.args else node.func.value
        if node.func.attr in ("t", *_KEEPS):
            return _swapped(_shape(own, shapes)) if node.func.attr == "t" else _shape(own, shapes)
    return None


def _swapped(shape: Shape | None) -> Shape | None:
    return (*shape[:-2], shape[-1], shape[-2]) if shape and len(shape) > 1 else shape


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"
