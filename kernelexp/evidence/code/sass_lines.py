"""The SASS of an entry, each instruction with its pipe and the source line that it comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.code import built, line_table
from kernelexp.evidence.code.line_table import LineRow
from warpsim.lineinfo import Source
from warpsim.tables import opcodes

_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+([^\s;][^;\n]*);")
_OPCODE = re.compile(
    r"\s*(?:\{\s*)?(?:@(?P<guard>!?U?P\w+)\s+)?(?P<mnemonic>(?P<opcode>[A-Z][A-Z0-9_]*)(?:\.\w+)*)"
)


class SassInstruction(msgspec.Struct, frozen=True, kw_only=True):
    """One instruction of an entry."""

    offset: int
    """Bytes from the entry's first instruction."""
    text: str
    """As cuobjdump prints it, without the semicolon."""
    source: Source | None
    """None where the line table does not say."""
    sm: int = 90
    """Of the architecture: 90 for sm_90a."""

    @property
    def opcode(self) -> str:
        return opcode_of(self.text)

    @property
    def mnemonic(self) -> str:
        """The opcode with its modifiers, LDG.E.128; empty where `text` is no instruction."""
        match = _OPCODE.match(self.text)
        return match["mnemonic"] if match else ""

    @property
    def guard(self) -> str:
        """The predicate that it executes under: P0, !UP1; empty for always."""
        match = _OPCODE.match(self.text)
        guard = (match["guard"] or "") if match else ""
        return "" if guard in ("PT", "UPT") else guard

    @property
    def never_executes(self) -> bool:
        """`@!PT LDS RZ, [RZ]`: ptxas keeps instructions apart with these."""
        return self.guard in ("!PT", "!UPT")

    @property
    def pipe(self) -> str:
        """One of opcodes.GROUPS."""
        return opcodes.group(self.mnemonic, self.text, self.sm)

    @property
    def is_padding(self) -> bool:
        """Whether it only fills the code up to its alignment."""
        return self.opcode in opcodes.PADDING


def opcode_of(text: str) -> str:
    """An instruction's opcode without predicate and modifiers, LDG of `@P0 LDG.E R2, [R4]`."""
    match = _OPCODE.match(text)
    return match["opcode"] if match else ""


def read(cubin: Path, dump: str, entry: str) -> tuple[SassInstruction, ...]:
    """The instructions of `entry` in cuobjdump's SASS `dump` of `cubin`, by offset."""
    rows = line_table.read(cubin, entry)
    return join(built.body(dump, entry), rows, built.sm_of(dump))


def join(body: str, rows: Sequence[LineRow], sm: int = 90) -> tuple[SassInstruction, ...]:
    """The instructions of one entry's SASS, with the last of the rows at or before each."""
    joined = []
    at = -1
    for match in _INSTRUCTION.finditer(body):
        offset = int(match[1], 16)
        while at + 1 < len(rows) and rows[at + 1].offset <= offset:
            at += 1
        joined.append(
            SassInstruction(
                offset=offset,
                text=match[2].rstrip(),
                source=rows[at].source if at >= 0 else None,
                sm=sm,
            )
        )
    return tuple(joined)
