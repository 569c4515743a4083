"""Plain text and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_<>\[\]{}|$~])")


def escape(text: str) -> str:
    """Text that shows as it is; what is in backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\1", text).replace("`", "\\`")
    shown = (
        code(part) if place % 2 else _SPECIAL.sub(r"\\\1", part) for place, part in enumerate(parts)
    )
    return "".join(shown)


def code(text: str) -> str:
    """Text as code, also in a cell of a table."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown of one line."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a docstring, each in one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]
