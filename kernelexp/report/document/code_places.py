"""Origins of the instructions of an inspected variant: lines, callers, loops."""

from __future__ import annotations

from kernelexp.evidence.code.sass_flow import SassLoop
from kernelexp.model.text import shorten
from kernelexp.services.inspection import Inspection
from warpsim.lineinfo import Source

_TEXT = 60
"""Columns of a line's text, at most."""
_POLLS = 8
"""Instructions of a loop that does nothing but wait, at most."""


def place(source: Source | None) -> str:
    """A line of the kernel, after the line that its function was inlined at."""
    return source.place() if source else "-"


def text_of(inspection: Inspection, source: Source | None) -> str:
    """The line's text; that of its caller where a line is nothing but a barrier."""
    if source is None:
        return ""
    own = source.own()
    text = line_of(inspection, own)
    bare = text in ("__syncthreads();", "__syncwarp();")
    return line_of(inspection, own.caller) if bare and own.caller else text


def line_of(inspection: Inspection, source: Source) -> str:
    text = inspection.texts.get(source.file, {}).get(source.line, "")
    return shorten(" ".join(text.split()), _TEXT)


def loop_line(inspection: Inspection, loop: SassLoop) -> Source | None:
    """The line that goes back: of several branches that of the outermost code, the last one."""
    sources = {
        sass_instruction.offset: sass_instruction.source for sass_instruction in inspection.code
    }
    known = [source for at in loop.branches if (source := sources.get(at))]
    return min(reversed(known), key=lambda item: len(item.frames()), default=None)


def polls(inspection: Inspection, loop: SassLoop) -> bool:
    """Whether it only waits for an mbarrier."""
    if len(loop.offsets) > _POLLS:
        return False
    names = [
        sass_instruction.mnemonic
        for sass_instruction in inspection.code
        if sass_instruction.offset in loop.offsets
    ]
    return any(name.startswith("SYNCS.PHASECHK") for name in names)
