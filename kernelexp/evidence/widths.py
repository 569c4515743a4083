"""Where SASS accesses memory in other widths than the PTX that an emulation counts.

ptxas merges neighbouring accesses: four shared loads of 32 bits become one of 128, which is one
request instead of four, with its own wavefronts and bank conflicts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kernelexp.arm import AccessWidths
from kernelexp.evidence.emulation_worker import LineCost
from kernelexp.evidence.sass_lines import SassInstruction
from kernelexp.lineinfo import Source

_Key: TypeAlias = tuple[Source, str]
"""A line, with what it was inlined at, and the class of its accesses."""
_SASS = re.compile(r"(?:@!?U?P\w+\s+)?(?P<verb>LD|ST)(?P<space>[SLG])(?P<modifiers>(?:\.\w+)*)\s")
_SPACES = {"S": "shared", "L": "local", "G": "global"}
_NARROW = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


def compare(lines: Sequence[LineCost], sass: Iterable[SassInstruction]) -> tuple[AccessWidths, ...]:
    """The lines, of the kernel's own folder, of which an executed access has another width.

    Widths alone are compared: ptxas may unroll a loop, so that there are more accesses than in PTX.
    """
    ptx, built = _of_ptx(lines), _of_sass(sass)
    apart = [key for key, widths in ptx.items() if widths.keys() != built.get(key, {}).keys()]
    lost = {what for source, what in ptx if (source, what) not in built}
    groups: dict[tuple[str, int, str], list[_Key]] = {}
    for source, what in apart:
        own = source.own()
        groups.setdefault((own.file, own.line, what), []).append((source, what))
    return tuple(
        _widths(place, _sum(ptx, keys), _sum(built, keys), place[2] in lost)
        for place, keys in sorted(groups.items(), key=lambda item: item[0])
    )


def _widths(
    place: tuple[str, int, str], ptx: Counter[int], sass: Counter[int], moved: bool
) -> AccessWidths:
    file, line, what = place
    ratio = None if moved else round(_mean(ptx) / _mean(sass), 4)
    return AccessWidths(
        file=file, line=line, what=what, ptx=_sorted(ptx), sass=_sorted(sass), ratio=ratio
    )


def _mean(widths: Counter[int]) -> float:
    return sum(bits * count for bits, count in widths.items()) / widths.total()


def _sorted(widths: Counter[int]) -> dict[int, int]:
    return dict(sorted(widths.items()))


def _sum(found: dict[_Key, Counter[int]], keys: Iterable[_Key]) -> Counter[int]:
    return sum((found.get(key, Counter()) for key in keys), Counter())


def _of_ptx(lines: Iterable[LineCost]) -> dict[_Key, Counter[int]]:
    found: dict[_Key, Counter[int]] = {}
    for line in lines:
        for each in line.accesses:
            found.setdefault((line.source, each.what), Counter())[each.bits] += each.count
    return found


def _of_sass(sass: Iterable[SassInstruction]) -> dict[_Key, Counter[int]]:
    found: dict[_Key, Counter[int]] = {}
    for each in sass:
        if each.source and (match := _SASS.match(each.text)):
            what = f"{_SPACES[match['space']]} {'load' if match['verb'] == 'LD' else 'store'}"
            found.setdefault((each.source, what), Counter())[_bits(match["modifiers"])] += 1
    return found


def _bits(modifiers: str) -> int:
    """Of one lane: 32 where no modifier says otherwise."""
    return next((_NARROW[each] for each in modifiers.split(".") if each in _NARROW), 32)
