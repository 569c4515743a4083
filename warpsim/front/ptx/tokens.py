"""PTX text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from warpsim.front.ptx.faults import PtxSyntaxError


class Tokens(NamedTuple):
    """Tokens, and the line of each."""

    texts: list[str]
    lines: list[int]


_TOKEN = re.compile(
    r"""
    "[^"]*"
  | 0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
  | [0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)? | [0-9]+[eE][-+]?[0-9]+ | [0-9]+U?
  | (?:[A-Za-z_$%.]|::)(?:[\w$%.]|::)*
  | [-+{}()\[\];,:@!|<>=*~&/?^]
  | [^\s]
    """,
    re.VERBOSE,
)
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRAY = re.compile(r"[^\w\"$%.\-+{}()\[\];,:@!|<>=*~&/?^\s]")


def tokens(text: str) -> Tokens:
    """All tokens of `text`, comments dropped; PtxSyntaxError for a stray one."""
    text = _BLOCK_COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    texts: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        code = line.partition("//")[0] if "//" in line and '"' not in line else line
        words: list[str] = _TOKEN.findall(code)
        if _STRAY.search(code):  # or in a string
            for word in words:
                if len(word) == 1 and _STRAY.match(word):
                    raise PtxSyntaxError(f"PTX line {number}: unexpected character {word!r}.")
        if ".reg." in code:  # `.reg.b16 x;`, as CUDA's headers write it.
            words = [part for word in words for part in _separated(word)]
        texts += words
        lines += [number] * len(words)
    return Tokens(texts, lines)


def _separated(word: str) -> list[str]:
    return [".reg", word[4:]] if word.startswith(".reg.") else [word]
