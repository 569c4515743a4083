"""A source as two variants compile it: the lines that only one has, and the values of their axes.

Where the variants' defines decide an #if, its other branches are left out; other conditions stay.
The branch that `if constexpr` takes is known by which lines have machine code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from kernelexp.report.site import directives

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
        chosen = directives.decide(word, condition, defines)
        branches.append(_Branch(here=chosen, over=chosen))
        return True
    if not branches:
        return False
    if word == "endif":
        branches.pop()
        return True
    last = branches[-1]
    chosen = True if word == "else" else directives.decide("if", condition, defines)
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
