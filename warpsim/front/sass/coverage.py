"""The table of covered opcodes, from the one that decoding uses; warpsim/docs/sass.md has it."""

from __future__ import annotations

import importlib
import re

from warpsim.front.sass import isa
from warpsim.front.sass.registry import PATTERNS, SassPattern
from warpsim.front.sass.syntax import AROUND, UNPACK

_FEW = 8
_GROUP = re.compile(r"\{:([^}]*)\}")


def table() -> str:
    """A markdown table for each area: opcodes with their modifiers, and what is modelled."""
    areas: dict[str, list[SassPattern]] = {}
    for pattern in PATTERNS:
        if pattern.text not in (AROUND, UNPACK):
            areas.setdefault(pattern.area, []).append(pattern)
    return "\n".join(_section(area, areas[area]) for area in sorted(areas))


def _section(area: str, patterns: list[SassPattern]) -> str:
    module = importlib.import_module(f"{isa.__name__}.{area}")
    title = (module.__doc__ or area).strip().split("\n")[0].rstrip(".")
    rows: dict[str, tuple[str, list[str]]] = {}
    for pattern in patterns:
        _, spelled = rows.setdefault(pattern.builder.__name__, (pattern.modelled, []))
        spelled.append(f"`{_shown(pattern.text)}`")
    lines = [f"### {title}", "", "| opcodes | what is modelled |", "|---|---|"]
    for note, spelled in rows.values():
        text = " ".join(note.split()).replace("|", "\\|")
        lines.append(f"| {' '.join(dict.fromkeys(sorted(spelled)))} | {text} |")
    return "\n".join([*lines, ""])


def _shown(text: str) -> str:
    """A pattern as people write it: [.a/.b] may be left out, {a/b} is one of several, {8/16/.../64}
    one of a sequence."""

    def group(match: re.Match[str]) -> str:
        first, *others = match[1].split("|")
        if len(others) > _FEW and all(other.isdigit() for other in others):
            others = [others[0], "...", others[-1]]
        if not first:
            return f"[{'/'.join(others)}]"
        return "{" + "/".join([first, *others]) + "}"

    return _GROUP.sub(group, text)
