"""A source as two variants compile it: the lines that only one has, and the values of their axes.

Where the variants' defines decide an #if, its other branches are left out; other conditions stay.
The branch that `if constexpr` takes is known by which lines have machine code.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
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


_DIRECTIVE = re.compile(r"\s*#\s*(\w+)(.*)")
_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "else", "endif"})
_CONTEXT = 3
_QUOTED = r'"(?:\\.|[^"\\])*"|//.*'

Lines = Sequence[str | None]
"""The lines of a source; None for one that the variant does not compile."""


class _Branch(msgspec.Struct):
    """An #if with its branches, at the one where the text is."""

    here: bool | None
    """Whether this branch is compiled; None where the defines do not say."""
    over: bool | None
    """Whether one of the branches so far is."""


def lines(text: Sequence[str], defines: Mapping[str, str], shown: Collection[str]) -> Lines:
    """The lines with the names in `shown` as what the variant defines them as."""
    words = re.compile(rf"{_QUOTED}|\b(?:{'|'.join(map(re.escape, sorted(shown)))})\b")
    kept: list[str | None] = []
    branches: list[_Branch] = []
    for line in text:
        match = _DIRECTIVE.match(line)
        if match and match[1] in _CONDITIONS:
            if not _follow(branches, match[1], match[2], defines):
                return [*text]  # unbalanced: the conditions are not what they seem
            inside = branches[:-1] if match[1] != "endif" else branches
            kept.append(line if all(branch.here is not False for branch in inside) else None)
        elif any(branch.here is False for branch in branches):
            kept.append(None)
        elif match and match[1] not in ("define", "pragma"):
            kept.append(line)
        else:
            kept.append(words.sub(lambda word: defines.get(word[0], word[0]), line))
    return kept if not branches else [*text]


def _follow(branches: list[_Branch], word: str, condition: str, defines: Mapping[str, str]) -> bool:
    """Goes into a branch or out of one; False where there is none to leave."""
    if word.startswith("if"):
        chosen = decide(word, condition, defines)
        branches.append(_Branch(here=chosen, over=chosen))
        return True
    if not branches:
        return False
    if word == "endif":
        branches.pop()
        return True
    last = branches[-1]
    chosen = True if word == "else" else decide("if", condition, defines)
    if last.over:
        last.here = False
    elif last.over is None:  # an earlier branch may be the one
        last.here = False if chosen is False else None
    else:
        last.here = last.over = chosen
    return True


def without_others(
    before: Lines, after: Lines, own: Collection[int], others: Collection[int]
) -> tuple[Lines, Lines]:
    """Both sources, each without the lines, counted from 1, that only the other has code of."""
    return (
        [None if n in others and n not in own else line for n, line in enumerate(before, 1)],
        [None if n in own and n not in others else line for n, line in enumerate(after, 1)],
    )


def difference(before: Lines, after: Lines) -> Iterator[str]:
    """A unified difference; its hunks name the line of the source that they begin at."""
    pairs = list(zip(before, after, strict=True))
    changed = [number for number, (one, other) in enumerate(pairs) if one != other]
    shown = sorted({at for n in changed for at in range(n - _CONTEXT, n + _CONTEXT + 1)})
    last, added = -2, list[str]()
    for at in (item for item in shown if 0 <= item < len(pairs)):
        if at != last + 1:
            yield from added
            added = []
            yield f"@@ line {at + 1} @@"
        last = at
        one, other = pairs[at]
        if one == other:
            yield from added
            added = []
            if one is not None:
                yield f" {one}"
            continue
        if one is not None:
            yield f"-{one}"
        if other is not None:
            added.append(f"+{other}")
    yield from added
