"""The rules that make mutants of a kernel's CUDA source, before nvcc sees it.

A rule is a pattern of the text and what stands there instead: a synchronisation forgotten or in the
wrong line, a ring that does not advance, a parity, a count, a bound or an index that is off by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

Replacement = Callable[[re.Match[str]], str]


class Rule(NamedTuple):
    change: str
    pattern: re.Pattern[str]
    """Its group `what` names the thing that is changed."""
    replacement: Replacement


RULES: list[Rule] = []


def _rule(change: str, pattern: str, replacement: str | Replacement) -> None:
    result = replacement if callable(replacement) else lambda match: match.expand(str(replacement))
    RULES.append(Rule(change, re.compile(pattern, re.MULTILINE), result))


def _plus(by: int) -> Replacement:
    """The number in the group `n`, and something added; the rest as it is."""

    def replacement(match: re.Match[str]) -> str:
        first, last = match.span("n")
        before, after = match.string[match.start() : first], match.string[last : match.end()]
        return f"{before}{int(match['n']) + by}{after}"

    return replacement


# What is forgotten, or stands in the wrong line

_ARGUMENTS = r"(?:<[^;()]*>)?\([^;{}]*?\)"
_SYNCHRONISATION = (
    r"(?P<what>(?:kx::)?(?:__sync\w+|__threadfence|cluster_sync|fence\w*|wait\w*|arrive\w*|"
    r"bar_\w+|barrier_cluster_\w+|mbarrier_arrive\w*|expect|"
    r"tcgen05_(?:fence|wait|commit|dealloc)\w*|cp_async_\w*(?:commit|wait)\w*|"
    r"wgmma_(?:fence|commit|wait)\w*|release\w*|pass_turn))"
)
_STATEMENT = rf"(?:if \(.*?\) )?{_SYNCHRONISATION}{_ARGUMENTS};"
_OTHER = r"(?!const|constexpr|uint|unsigned|float|auto|asm|return|break|using|Tile)[\w*(][^;{}#]*;"

_rule("dropped", rf"(?<=[ )]){_SYNCHRONISATION}{_ARGUMENTS};", ";")
_rule("dropped", rf"(?<=[ )])(?P<what>kx::mbarrier_init|init){_ARGUMENTS};", ";")
_rule(
    "after the next statement",
    rf"^(?P<indent> +)(?P<it>{_STATEMENT})\n(?P<next>(?P=indent){_OTHER})\n",
    r"\g<next>\n\g<indent>\g<it>\n",
)
_rule(
    "before the last statement",
    rf"^(?P<indent> +)(?P<last>{_OTHER})\n(?P<it>(?P=indent){_STATEMENT})\n",
    r"\g<it>\n\g<indent>\g<last>\n",
)
_rule("never advanced", r"(?P<what>\w+)\.advance\(\);", ";")
_rule("advanced twice", r"(?P<what>\w+)\.advance\(\);", r"\g<0> \g<0>")

# Parities and stages

_rule("parity inverted", r"(?P<what>(?:\w+\.)?\w*phase) \^ 1(?=[,)])", r"\g<what>")
_rule("parity inverted", r"(?<=, )(?P<what>(?:\w+\.)?\w*phase)(?=\);)", r"(\g<what> ^ 1)")
_rule("parity never flipped", r"(?P<what>\w*phase) \^= 1;", ";")
_rule("parity flipped at every use", r"(?P<what>i) / 2 % 2", r"\g<what> % 2")
_rule(
    "another stage", r"(?P<what>\w+\.\w+)\((?P<ring>\w+)\.stage\)", r"\g<what>(\g<ring>.stage ^ 1)"
)
_rule("another stage", r"(?P<what>\w+)\[slot\]", r"\g<what>[slot ^ 1]")
_rule("another stage", r"(?P<what>\w+)\[i % 2\]", r"\g<what>[(i + 1) % 2]")

# Counts, bounds and who does it

_COUNTED = r"(?<= )(?P<what>(?:kx::mbarrier_)?init)\((?P<barrier>[^;]*), (?P<n>[^,;]+)\);"
_EXPECTED = r"(?<= )(?P<what>expect|kx::\w+expect_tx\w*)\((?P<barrier>[^;]*), (?P<n>[^,;]+)\);"
_rule("count + 1", _COUNTED, r"\g<what>(\g<barrier>, (\g<n>) + 1);")
_rule("count - 1", _COUNTED, r"\g<what>(\g<barrier>, (\g<n>) - 1);")
_rule("half of the bytes", _EXPECTED, r"\g<what>(\g<barrier>, (\g<n>) / 2);")
_NAME = r"(?<![\w.:])(?P<what>[a-z][\w.]*)"
_rule("<= instead of <", rf"{_NAME} < (?=[\w:.]+)", r"\g<what> <= ")
_rule(">= instead of >", rf"{_NAME} > (?=[\w:.]+)", r"\g<what> >= ")
_rule("> instead of >=", rf"{_NAME} >= (?=[\w:.]+)", r"\g<what> > ")
_rule("every lane", r"if \((?P<what>\w+) == 0\)", r"if (\g<what> < 32)")
_rule("every lane", r"(?P<what>kx::elect_sync)\(\)", "true")
_rule(
    "one group fewer", r"(?P<what>kx::\w*wait_group\w*)<(?P<n>[^;<>]+)>", r"\g<what><(\g<n>) + 1>"
)

# Barriers and addresses

_PAIRS = {"full": "free", "free": "full", "mainloop_done": "epilogue_free", "done": "drained",
          "epilogue_free": "mainloop_done", "drained": "done"}  # fmt: skip
_rule(
    "the other barrier",
    r"(?P<what>(?P<of>cta\.|&)(?P<name>full|free|mainloop_done|epilogue_free|done|drained))(?=[(\[])",
    lambda match: f"{match['of']}{_PAIRS[match['name']]}",
)
_rule("a bit higher", r"(?P<what>[\w)}]+) << (?P<n>\d+)", _plus(1))
_rule("not swizzled", r"(?P<what>\w+(?: % \d+)?) \^ (?:\w+ % \d+|[2-9]|[1-9]\d)\b", r"\g<what>")
_rule("modulus + 1", rf"{_NAME} % (?P<n>\d+)", _plus(1))
_rule("one further", rf"{_NAME} \+ (?P<n>[1-9]\d*)\b(?! *<)", _plus(1))
_rule("one less", rf"{_NAME} - (?P<n>[1-9]\d*)\b(?! *>)", _plus(-1))


def mutants(kernel: str, text: str, part: slice) -> dict[str, str]:
    """Texts by key: kernel | what is changed and which of its kind | change.

    Of a part of the text, for each rule and thing that it changes the first and that in the middle.
    Not all of them compile, and some change nothing that the kernel executes.
    """
    result: dict[str, str] = {}
    for rule in RULES:
        groups: dict[str, list[re.Match[str]]] = {}
        for match in rule.pattern.finditer(text, part.start, part.stop):
            groups.setdefault(match["what"], []).append(match)
        for what, group in groups.items():
            for match in (group[0], group[len(group) // 2]):
                key = f"{kernel} | {what} {_ordinal(text, part, match)} | {rule.change}"
                result[key] = text[: match.start()] + rule.replacement(match) + text[match.end() :]
    return result


def _ordinal(text: str, part: slice, match: re.Match[str]) -> int:
    """Which of its kind a rule changes, from 1 on."""
    pattern = re.compile(rf"(?<![\w.:]){re.escape(match['what'])}(?!\w)")
    return len(pattern.findall(text, part.start, match.start("what"))) + 1
