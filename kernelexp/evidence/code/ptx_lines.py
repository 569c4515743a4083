"""The PTX of an entry, each instruction with the source line that its line table names."""

from __future__ import annotations

import re

import msgspec

_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]+)"')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)")


class PtxInstruction(msgspec.Struct, frozen=True, kw_only=True):
    """An instruction of an entry, or of a function that it calls and that was not inlined."""

    text: str
    """As the compiler wrote it, without the semicolon."""
    file: str
    """Path as the compiler has it; empty where no line is named."""
    line: int


def read(ptx: str, entry: str) -> tuple[PtxInstruction, ...]:
    """The instructions of `entry` in their order; none where `ptx` lacks it."""
    files = {int(number): path for number, path in _FILE.findall(ptx)}
    start = re.search(rf"\.entry\s+{re.escape(entry)}\b[^{{;]*\{{", ptx)
    if start is None:
        return ()
    instructions = []
    file, number = "", 0
    for line in ptx[start.end() :].splitlines():
        text = line.strip()
        if line.startswith("}"):
            break
        if loc := _LOC.match(text):
            file, number = files.get(int(loc[1]), ""), int(loc[2])
        elif text.endswith(";") and not text.startswith((".", "//")):
            instructions.append(PtxInstruction(text=text.rstrip(";"), file=file, line=number))
    return tuple(instructions)
