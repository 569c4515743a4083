"""Text of others made safe to show on a terminal."""

from __future__ import annotations

import re

# C0 without newline and tab, DEL, C1, and the characters that reorder or hide what surrounds them;
# halves of surrogate pairs stand for the bytes of file names that are not UTF-8.
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with each control character spelled out (`\\x1b`); newlines and tabs stay.

    For what others wrote: a compiler's output, a record, the name of a file.
    """
    return CONTROL.sub(_spell, text.replace("\r\n", "\n"))


def _spell(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # the byte that Python's surrogateescape could not decode
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
