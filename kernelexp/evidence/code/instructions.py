"""The static instruction mix of an entry: its SASS, counted by the pipe that executes it.

Static: each instruction of the code once, however often it runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from warpsim.tables.opcodes import GROUPS, PADDING, group

# They begin with characters that are looked for: with `^\s+` each of 10,000 lines would be tried.
_INSTRUCTION = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)([^;]*)"
)
_SM = re.compile(r"^\s*(?:code for|arch =) sm_(\d+)", re.M)
_FUNCTION = re.compile(r"Function : (\S+)\s*$", re.M)


def count_opcodes(dump: str, entry: str) -> dict[str, int]:
    """Instructions of `entry` in cuobjdump's SASS, by opcode, most frequent first."""
    counts = Counter(opcode for opcode, _, _ in _INSTRUCTION.findall(body(dump, entry)))
    for opcode in PADDING:
        counts.pop(opcode, None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def count_all(dump: str, entry: str) -> int:
    """Instructions of `entry` in cuobjdump's SASS, what only pads the code included."""
    return len(_INSTRUCTION.findall(body(dump, entry)))


def count_pipes(dump: str, entries: Iterable[str]) -> dict[str, int]:
    """Instructions of entries by the first of their pipes, in the order of opcodes.GROUPS; groups
    without any are left out."""
    counts: Counter[str] = Counter()
    sm = sm_of(dump)
    for entry in entries:
        for opcode, modifiers, operands in _INSTRUCTION.findall(body(dump, entry)):
            if opcode not in PADDING:
                counts[group(opcode + modifiers, operands, sm)] += 1
    return {name: counts[name] for name in GROUPS if counts[name]}


def sm_of(dump: str) -> int:
    """The architecture in the head of a dump; 90, as of sm_90a, in one without."""
    match = _SM.search(dump)
    return int(match[1]) if match else 90


def body(dump: str, entry: str) -> str:
    """The part of a dump between this function's header and the next one's."""
    starts = list(_FUNCTION.finditer(dump))
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        if start.group(1) == entry:
            return dump[start.end() : after.start() if after else len(dump)]
    return ""
