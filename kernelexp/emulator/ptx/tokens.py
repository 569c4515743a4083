"""PTX text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from kernelexp.emulator.ptx.faults import PtxSyntaxError


class Token(NamedTuple):
    text: str
    line: int


_TOKEN = re.compile(
    r"""
    "[^"]*"
  | 0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} | 0[xX][0-9a-fA-F]+U? | [0-9]+\.[0-9]+ | [0-9]+U?
  | (?:[A-Za-z_$%.]|::)(?:[\w$%.]|::)*
  | [-+{}()\[\];,:@!|<>=*~&/]
  | [^\s]
    """,
    re.VERBOSE,
)
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRAY = re.compile(r"[^\w\"$%.\-+{}()\[\];,:@!|<>=*~&/]")


def tokens(text: str) -> list[Token]:
    """All tokens of `text` with their lines, comments dropped; PtxSyntaxError for a stray one."""
    text = _BLOCK_COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    found: list[Token] = []
    for number, line in enumerate(text.split("\n"), 1):
        code = line.partition("//")[0] if "//" in line and '"' not in line else line
        for word in _TOKEN.findall(code):
            if len(word) == 1 and _STRAY.match(word):
                raise PtxSyntaxError(f"PTX line {number}: unexpected character {word!r}.")
            if word.startswith(".reg."):  # `.reg.b16 x;`, as CUDA's headers write it.
                found.append(Token(".reg", number))
                word = word[4:]
            found.append(Token(word, number))
    return found
