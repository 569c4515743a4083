"""Source lines of the instructions of an inspected variant."""

from __future__ import annotations

from kernelexp.model.text import shorten
from kernelexp.services.inspection import Inspection
from warpsim.lineinfo import Source

_TEXT = 60
"""Columns of a line's text, at most."""


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
