"""The covered instructions as markdown, from the tables that decoding uses.

python -m warpsim.coverage prints those of PTX and of SASS; the documentation's site has them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

import warpsim.front.ptx.isa
import warpsim.front.sass.isa
from warpsim.front.ptx import registry as ptx_registry
from warpsim.front.sass import registry as sass_registry
from warpsim.front.table import GROUP, Row

_FEW = 8
_INTERNAL = "@"
"""Begins what decoding puts before other instructions, which no listing has."""


def ptx() -> str:
    """A list for each area: instructions with their modifiers, and what is modelled."""
    return _tables(warpsim.front.ptx.isa.__name__, ptx_registry.TABLE.rows)


def sass() -> str:
    """The same for SASS."""
    return _tables(warpsim.front.sass.isa.__name__, sass_registry.TABLE.rows)


def _tables(package: str, rows: Sequence[Row[Any]]) -> str:
    areas: dict[str, list[Row[Any]]] = {}
    for row in rows:
        if not row.text.startswith(_INTERNAL):
            areas.setdefault(row.area, []).append(row)
    return "\n".join(_section(package, area, areas[area]) for area in sorted(areas))


def _section(package: str, area: str, rows: Sequence[Row[Any]]) -> str:
    module = importlib.import_module(f"{package}.{area}")
    title = (module.__doc__ or area).strip().split("\n")[0].rstrip(".")
    notes: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        patterns = notes.setdefault((row.function if row.modelled else "", row.modelled), [])
        patterns.append(f"`{spelled(row.text)}`")
    lines = [f"### {title}", ""]
    for (_, note), patterns in notes.items():
        lines += [f"- {pattern}" for pattern in dict.fromkeys(patterns)]
        if note:
            lines.append("  " + " ".join(note.split()))
    return "\n".join([*lines, ""])


def spelled(text: str) -> str:
    """A pattern as people write it: [.a/.b] may be left out, {a/b} is one of several, {8/16/.../64}
    one of a sequence."""

    def group(match: re.Match[str]) -> str:
        first, *others = match[2].split("|")
        if len(others) > _FEW and all(other.isdigit() for other in others):
            others = [others[0], "...", others[-1]]
        if not first:
            return f"[{'/'.join(others)}]"
        return "{" + "/".join([first, *others]) + "}" if others else first

    return GROUP.sub(group, text)


if __name__ == "__main__":
    print(f"## PTX\n\n{ptx()}\n## SASS\n\n{sass()}", end="")
