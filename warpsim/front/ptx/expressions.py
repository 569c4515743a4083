"""Constant expressions: PTX has C's operators on integers (PTX ISA, "Constant Expressions")."""

from __future__ import annotations

import operator
from collections.abc import Callable

from warpsim.front.ptx.stream import Stream


def _divided(a: int, b: int) -> int:
    """Rounds towards zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_BINARY: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: bool(a or b)},
    {"&&": lambda a, b: bool(a and b)},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divided, "%": lambda a, b: a - b * _divided(a, b)},
)
"""By precedence, the weakest first."""
_LEVELS = {spelled: level for level, operators in enumerate(_BINARY) for spelled in operators}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": operator.not_,
}


def expression(tokens: Stream) -> int:
    """The value of the expression at which the tokens stand."""
    try:
        return _conditional(tokens)
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        raise tokens.fault(f"a constant expression has no value ({error})") from error


def _conditional(tokens: Stream) -> int:
    value = _combined(tokens, 0)
    if not tokens.accept("?"):
        return value
    first = _conditional(tokens)
    tokens.expect(":")
    second = _conditional(tokens)
    return first if value else second


def _combined(tokens: Stream, weakest: int) -> int:
    """A factor, and what operators that bind as strongly as one of a level make of it."""
    value = _factor(tokens)
    while (level := _LEVELS.get(spelled := _spelled(tokens), -1)) >= weakest:
        for _ in spelled:
            tokens.take()
        value = int(_BINARY[level][spelled](value, _combined(tokens, level + 1)))
    return value


def _spelled(tokens: Stream) -> str:
    """The operator at which the tokens stand: tokens are single characters."""
    both = tokens.peek() + tokens.peek(1)
    return both if both in _LEVELS else tokens.peek()


def _factor(tokens: Stream) -> int:
    if tokens.accept("("):
        value = _conditional(tokens)
        tokens.expect(")")
        return value
    if tokens.peek() in _UNARY:
        return int(_UNARY[tokens.take()](_factor(tokens)))
    return tokens.integer()
