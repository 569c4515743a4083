"""The covered instructions as markdown, from the tables that decoding uses.

python -m warpsim.coverage prints those of PTX and of SASS; the documentation's site has them.
"""

from __future__ import annotations

import importlib
import re

from warpsim.front.ptx import isa
from warpsim.front.ptx.registry import PATTERNS, PtxPattern
from warpsim.front.sass import coverage

_GROUP = re.compile(r"\{\w+:([^}]*)\}")


def ptx() -> str:
    """A list for each area: instructions with their modifiers, and what is modelled."""
    areas: dict[str, list[PtxPattern]] = {}
    for pattern in PATTERNS:
        areas.setdefault(pattern.area, []).append(pattern)
    return "\n".join(_section(area, areas[area]) for area in sorted(areas))


def _section(area: str, patterns: list[PtxPattern]) -> str:
    module = importlib.import_module(f"{isa.__name__}.{area}")
    title = (module.__doc__ or area).strip().split("\n")[0].rstrip(".")
    lines = [f"### {area}", "", f"{title}.", ""]
    notes: dict[str, list[str]] = {}
    for pattern in patterns:
        notes.setdefault(pattern.modelled, []).append(f"`{_shown(pattern.text)}`")
    for note, spelled in notes.items():
        lines += [f"- {line}" for line in spelled]
        if note:
            lines.append("  " + " ".join(note.split()))
    return "\n".join([*lines, ""])


def _shown(text: str) -> str:
    def group(match: re.Match[str]) -> str:
        choices = match.group(1).split("|")
        if choices[0] == "":
            return "[" + "|".join(choices[1:]) + "]"
        return "{" + "|".join(choices) + "}" if len(choices) > 1 else choices[0]

    return _GROUP.sub(group, text)


if __name__ == "__main__":
    print(f"## PTX\n\n{ptx()}\n## SASS\n\n{coverage.table()}", end="")
