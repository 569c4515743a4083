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
    (?P<skip>[ \t\r\f]+|//[^\n]*|/\*.*?\*/)
  | (?P<newline>\n)
  | (?P<string>"[^"\n]*")
  | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|[0-9]+\.[0-9]+|[0-9]+U?)
  | (?P<name>(?:[A-Za-z_$%.]|::)(?:[\w$%.]|::)*)
  | (?P<mark>[-+{}()\[\];,:@!|<>=*~&/])
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> list[Token]:
    """All tokens of `text` with their lines, comments dropped; PtxSyntaxError for a stray one."""
    found: list[Token] = []
    line = 1
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PtxSyntaxError(f"PTX line {line}: unexpected character {text[position]!r}.")
        position = match.end()
        kind = match.lastgroup
        if kind == "newline":
            line += 1
        elif kind == "skip":
            line += match.group().count("\n")
        else:
            found.append(Token(match.group(), line))
    return found
