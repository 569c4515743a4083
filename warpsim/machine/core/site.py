"""An instruction as the machine knows it: where it stands, and what it counts as."""

from __future__ import annotations

import msgspec

from warpsim.errors import UsageError
from warpsim.lineinfo import Source as Source

CALLERS = 2
"""How many of the lines that a function was inlined at are named with its own."""


class UnsupportedInstruction(UsageError):
    """An instruction, or a form of one, that the emulator does not execute."""


class Site(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One instruction of a program."""

    number: int
    """Its index in the program."""
    opcode: str
    kind: str
    """The class that it is counted in: see counters.py. Empty: it is not counted."""
    listing: str
    """What `line` is a line of: "PTX", ..."""
    line: int
    source: Source | None
    text: str
    entered: int | None = None
    """The number of the branch before it by which lanes go around for which its guard does not
    hold: it is executed whenever that is."""
    element: int = 0
    """Bytes of what it loads or stores, one element of it; 0: not known."""
    pipes: tuple[str, ...] = ()
    """Those that execute it, by ncu's names."""

    def where(self) -> str:
        return where(self.listing, self.line, self.source)


def where(listing: str, line: int, source: Source | None) -> str:
    """`file.cu:12 → :7, PTX line 345`, or just the PTX line without -lineinfo."""
    if source is None:
        return f"{listing} line {line}"
    inner = "" if source.own() is source or source.is_toolkits else f" → {source}"
    return f"{source.place(CALLERS)}{inner}, {listing} line {line}"
