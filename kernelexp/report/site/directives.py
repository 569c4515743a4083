"""Whether the condition of an #if holds, as far as defines say."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping

_LONGEST = 1000
_TOKEN = re.compile(
    r"\s*(?:(?P<defined>defined\s*(?:\(\s*(\w+)\s*\)|\s(\w+)))|(?P<number>\d\w*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>&&|\|\||[=!<>]=|[-+*/%<>!()]))"
)


def decide(word: str, condition: str, defines: Mapping[str, str]) -> bool | None:
    """Whether the condition after `word`, one of if, ifdef, ifndef, holds; None where it asks for
    more than the defines."""
    condition = condition.split("//")[0].strip()
    if word in ("ifdef", "ifndef"):
        return (word == "ifdef") if condition in defines else None
    if len(condition) > _LONGEST:
        return None
    try:
        tokens = [*_tokens(condition, defines), ""]
        value = _value(tokens, 0)
    except (ValueError, ZeroDivisionError, RecursionError):
        return None
    return bool(value) if tokens == [""] else None


def _tokens(condition: str, defines: Mapping[str, str]) -> Iterator[str | int]:
    """Operators, and values of what stands between them; ValueError for what is not known."""
    at = 0
    while at < len(condition):
        match = _TOKEN.match(condition, at)
        if match is None:
            raise ValueError(condition)
        at = match.end()
        if match["defined"]:
            yield int(_known(match[2] or match[3], defines) is not None)
        elif match["name"]:
            yield int(_known(match["name"], defines), 0)
        elif match["number"]:
            yield int(match["number"].rstrip("lL"), 0)  # unsigned ones compare otherwise
        else:
            yield match["operator"]


def _known(name: str, defines: Mapping[str, str]) -> str:
    if name not in defines:
        raise ValueError(name)  # it may be defined anywhere
    return defines[name]


def _value(tokens: list[str | int], above: int) -> int:
    """Of what comes first, up to an operator that binds no more than `above`; it is removed."""
    token = tokens.pop(0)
    if isinstance(token, int):
        left = token
    elif token == "(":
        left = _value(tokens, 0)
        if tokens.pop(0) != ")":
            raise ValueError(token)
    elif token in _UNARY:
        left = _UNARY[token](_value(tokens, _TIGHTEST))
    else:
        raise ValueError(token)
    while isinstance(tokens[0], str) and above < _BINDS.get(tokens[0], 0):
        sign = str(tokens.pop(0))
        left = int(_BINARY[sign](left, _value(tokens, _BINDS[sign])))
    return left


def _divide(a: int, b: int) -> int:
    """Towards zero, as C++ does."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_LEVELS = ("||", "&&", "== !=", "< <= > >=", "+ -", "* / %")
_BINDS = {sign: n for n, signs in enumerate(_LEVELS, 1) for sign in signs.split()}
_TIGHTEST = len(_LEVELS)
_BINARY: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: bool(a) or bool(b),
    "&&": lambda a, b: bool(a) and bool(b),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": lambda a, b: a - b * _divide(a, b),
}
_UNARY: dict[str, Callable[[int], int]] = {"!": operator.not_, "-": operator.neg, "+": operator.pos}
