"""The roles of a kernel: which warps of a CTA run the same code, and what the source calls them.

Two warps have the same role if each runs more than two thirds of what the other runs. That is
weighed by source line, each line by how many instructions were executed for it, those inlined into
it included: so two instantiations of a template are mostly the same code, and a helper that all
roles call counts less than the lines that call it.
"""

from __future__ import annotations

import functools
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.emulate.emulated_costs import executed
from kernelexp.evidence.emulate.job import LineCost

Place = tuple[str, int]
"""File and line."""
COMMENT = re.compile(r"//\s*role:\s*(\S.*?)\s*$")
"""`// role: producer` names the role that alone runs the next line with a role."""
_IDENTIFIER = re.compile(r"(\d+)")
_ROLE = re.compile(r"(?:role_(\w+)|(\w+)_role)$")


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """Warps of a CTA that run the same code."""

    name: str
    """The source's, or that of its warps."""
    warps: int
    """A bit each: bit 3 is warp 3."""

    @property
    def where(self) -> str:
        return spell(self.warps)


def spell(warps: int) -> str:
    """`warp 0`, `warps 2-6`, `warps 0-3, 8`."""
    runs: list[list[int]] = []
    for warp in members(warps):
        if runs and runs[-1][1] == warp - 1:
            runs[-1][1] = warp
        else:
            runs.append([warp, warp])
    ranges = ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs)
    return f"warp{'s' * (warps.bit_count() > 1)} {ranges}"


def members(warps: int) -> list[int]:
    """The indices of the bits that are set."""
    return [index for index in range(warps.bit_length()) if warps >> index & 1]


def _every(lines: Sequence[LineCost]) -> int:
    """All warps that execute any of these lines, a bit each."""
    return functools.reduce(operator.or_, (line.warps for line in lines), 0)


def find(lines: Sequence[LineCost]) -> tuple[int, ...]:
    """The warps of each role, a bit each, by their first warp."""
    weights = {warp: _weights(lines, warp) for warp in members(_every(lines))}
    roles: list[int] = []
    for warp, own in weights.items():
        for index, role in enumerate(roles):
            if _alike(own, weights[members(role)[0]]):
                roles[index] |= 1 << warp
                break
        else:
            roles.append(1 << warp)
    return tuple(roles)


def _weights(lines: Sequence[LineCost], warp: int) -> dict[Place, float]:
    """Instructions that one warp executes for each line, as if its fellows executed as many."""
    result: dict[Place, float] = {}
    for line in lines:
        if line.warps >> warp & 1:
            share = executed(line.counters) / line.warps.bit_count()
            for place in {(frame.file, frame.line) for frame in line.source.frames()}:
                result[place] = result.get(place, 0.0) + share
    return result


def _alike(one: Mapping[Place, float], other: Mapping[Place, float]) -> bool:
    return all(
        3 * sum(a[place] for place in a if place in b) > 2 * sum(a.values())
        for a, b in ((one, other), (other, one))
    )


def name(
    groups: Sequence[int],
    lines: Sequence[LineCost],
    functions: Mapping[Place, str],
    comments: Mapping[Place, str],
) -> tuple[Role, ...]:
    """The roles with names: a comment's, else a function's, else that of their warps.

    functions: mangled names of inlined functions, by the lines in them.
    comments: what `// role: ...` says, by its place.
    """
    named = [_commented(warps, lines, comments) for warps in groups]
    called = _called(groups, lines, functions)
    names = [one or other for one, other in zip(named, called, strict=True)]
    return tuple(
        Role(name=item if item and names.count(item) == 1 else spell(warps), warps=warps)
        for warps, item in zip(groups, names, strict=True)
    )


def _commented(warps: int, lines: Sequence[LineCost], comments: Mapping[Place, str]) -> str:
    """The name of a comment whose next line that one role alone runs is run by this one."""
    ran: dict[Place, int] = {}
    for line in lines:
        for frame in line.source.frames():
            place = (frame.file, frame.line)
            ran[place] = ran.get(place, 0) | line.warps
    every = _every(lines)
    for (file, number), text in comments.items():
        after = [place for place in ran if place[0] == file and place[1] >= number]
        apart = [place for place in sorted(after) if ran[place] != every]
        if apart and not ran[apart[0]] & ~warps:
            return text
    return ""


def _called(
    groups: Sequence[int], lines: Sequence[LineCost], functions: Mapping[Place, str]
) -> list[str]:
    """Returns for each role the function that names it; empty where none does.

    One that is called `..._role`, else the outermost in which its warps, and no others, execute
    more than half of their instructions.
    """
    counts = []
    for warps in groups:
        own: Counter[str] = Counter()
        for line in lines:
            if not line.warps & ~warps:
                frames = reversed(line.source.frames())
                names = [plain(functions.get((f.file, f.line), "")) for f in frames]
                for fromkey in dict.fromkeys(filter(None, names)):
                    own[fromkey] += executed(line.counters)
        counts.append(own)
    return [
        _choose(own, [other for other in counts if other is not own], _total(lines, warps))
        for own, warps in zip(counts, groups, strict=True)
    ]


def _total(lines: Sequence[LineCost], warps: int) -> int:
    return sum(executed(line.counters) for line in lines if not line.warps & ~warps)


def _choose(own: Counter[str], others: Sequence[Counter[str]], total: int) -> str:
    alone = {name: count for name, count in own.items() if not any(name in o for o in others)}
    for entry, _ in sorted(alone.items(), key=lambda item: -item[1]):
        if match := _ROLE.match(entry):
            return match[1] or match[2]
    # Callers were counted before what they call: the first is the outermost.
    return next((element for element, count in alone.items() if 2 * count > total), "")


def plain(mangled: str) -> str:
    """The last identifier of a mangled function's name; empty for a lambda's."""
    if not mangled.startswith("_Z"):
        return mangled
    rest = re.sub(r"^_Z(?:N[rVK]*)?(?:St)?", "", mangled)
    result = ""
    while match := _IDENTIFIER.match(rest):
        start, length = match.end(), int(match[1])
        result, rest = rest[start : start + length], rest[start + length :]
    return result


def comments(texts: Mapping[str, Mapping[int, str]]) -> dict[Place, str]:
    """Returns the names that source comments give the roles, by file and line."""
    return {
        (file, number): match[1]
        for file, text in texts.items()
        for number, line in text.items()
        if (match := COMMENT.search(line))
    }


def read_texts(root: Path, files: Iterable[str]) -> dict[str, dict[int, str]]:
    """The lines of the project's own files; those of the toolkit are left out."""
    result = {}
    for file in sorted(files):
        path = root / file
        if not Path(file).is_absolute() and path.is_file():
            lines = path.read_text("utf-8", "replace").split("\n")
            result[file] = dict(enumerate(lines, 1))
    return result
