"""Accesses to memory whose widths in SASS differ from those in the PTX that an emulation counts.

ptxas merges neighbouring accesses: four shared loads of 32 bits become one of 128, which is one
request instead of four, with its own wavefronts and bank conflicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate.job import LineCost
from kernelexp.facts import accesses
from kernelexp.model.arm import AccessWidths
from warpsim.lineinfo import Source

_Key: TypeAlias = tuple[Source, str]
"""A line, with what it was inlined at, and the class of its accesses."""


def compare(lines: Sequence[LineCost], sass: Iterable[SassInstruction]) -> tuple[AccessWidths, ...]:
    """The lines, of the kernel's own folder, of which an executed access has another width.

    Widths alone are compared: ptxas may unroll a loop, so that there are more accesses than in PTX.
    """
    ptx, built = _of_ptx(lines), _of_sass(sass)
    _follow(ptx, built)
    apart = [key for key, widths in ptx.items() if widths.keys() != built.get(key, {}).keys()]
    lost = {what for source, what in ptx if (source, what) not in built}
    groups: dict[tuple[str, int, str], list[_Key]] = {}
    for source, what in apart:
        own = source.own()
        groups.setdefault((own.file, own.line, what), []).append((source, what))
    return tuple(
        AccessWidths(
            file=file,
            line=line,
            what=what,
            ptx=_sum(ptx, keys),
            sass=_sum(built, keys),
            ratio=_ratio([(ptx[key], built.get(key, Counter())) for key in keys], what in lost),
        )
        for (file, line, what), keys in sorted(groups.items(), key=lambda item: item[0])
    )


def _follow(ptx: dict[_Key, Counter[int]], built: dict[_Key, Counter[int]]) -> None:
    """Leaves out accesses that ptxas moved to a line without any, in the width that they had."""
    spare = [key for key in built if key not in ptx]
    for source, what in [key for key in ptx if key not in built]:
        own = ptx[source, what].keys()
        moved = (key for key in spare if key[1] == what and built[key].keys() == own)
        if (place := next(moved, None)) is not None:
            spare.remove(place)
            del ptx[source, what]


def _ratio(pairs: Sequence[tuple[Counter[int], Counter[int]]], moved: bool) -> float | None:
    """Instructions of SASS for one of PTX, where a line moves the same bytes in both, but for a
    loop that is unrolled; None where it does not, or where bytes may be from another line."""
    requests = 0.0
    for ptx, sass in pairs:
        times, rest = divmod(_bytes(sass), _bytes(ptx))
        if not times or rest or (times > 1 and moved):
            return None
        requests += sass.total() / times
    return round(requests / sum(ptx.total() for ptx, _ in pairs), 4)


def _bytes(widths: Counter[int]) -> int:
    return sum(bits * count for bits, count in widths.items()) // 8


def _sum(widths: dict[_Key, Counter[int]], keys: Iterable[_Key]) -> dict[int, int]:
    total = sum((widths.get(key, Counter()) for key in keys), Counter[int]())
    return dict(sorted(total.items()))


def _of_ptx(lines: Iterable[LineCost]) -> dict[_Key, Counter[int]]:
    widths: dict[_Key, Counter[int]] = {}
    for line in lines:
        for access in line.accesses:
            widths.setdefault((line.source, access.what), Counter())[access.bits] += access.count
    return widths


def _of_sass(sass: Iterable[SassInstruction]) -> dict[_Key, Counter[int]]:
    widths: dict[_Key, Counter[int]] = {}
    for sass_instruction in sass:
        access = accesses.of_sass(sass_instruction.mnemonic)
        if sass_instruction.source and access and access.kind in accesses.COMPARED:
            widths.setdefault((sass_instruction.source, access.kind), Counter())[access.bits] += 1
    return widths
