"""Sentences on source lines whose memory accesses have other widths in SASS than in PTX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernelexp.model.arm import AccessWidths, EmulatedEvidence

_PLACES = 3


def of_line(evidence: EmulatedEvidence | None, file: str, line: int) -> list[AccessWidths]:
    """Those of one source line; `file` is a path from the project's root."""
    every = evidence.widths if evidence else ()
    return [widths for widths in every if (widths.file, widths.line) == (file, line)]


def spell(widths: AccessWidths) -> str:
    """`SASS loads 128 bits where PTX loads 4 x 32: expect 25% of these requests`."""
    space, verb = widths.what.split()
    if not widths.sass:
        return (
            f"SASS has no {widths.what} at this line: ptxas moved it to another line, "
            "or left it out"
        )
    words = f"SASS {verb}s {_spell(widths.sass)} bits where PTX {verb}s {_from(widths)}"
    place = "" if space == "global" else f" ({space})"
    if widths.ratio is None:
        return f"{words}{place}"
    return f"{words}{place}: expect {100 * widths.ratio:.0f}% of these requests"


def _spell(widths: Iterable[int]) -> str:
    *most, last = map(str, sorted(widths))
    return f"{', '.join(most)} and {last}" if most else last


def _from(widths: AccessWidths) -> str:
    """`4 x 32` for what becomes one access of 128 bits."""
    if len(widths.ptx) == len(widths.sass) == 1:
        (was,), (now,) = widths.ptx, widths.sass
        if now > was and now % was == 0:
            return f"{now // was} x {was}"
    return _spell(widths.ptx)


def summarize(evidence: EmulatedEvidence | None) -> str:
    """Explains how widths affect a launch's counters, in a sentence without a stop; else empty."""
    every = evidence.widths if evidence else ()
    if not every:
        return ""
    kinds = dict.fromkeys(widths.what for widths in every)
    parts = [_lines(kind, [widths for widths in every if widths.what == kind]) for kind in kinds]
    does = "merges" if all(map(_is_wider, every)) else "changes the widths of"
    return (
        f"counted on PTX, and ptxas {does} {', '.join(parts)}: requests, wavefronts and bank "
        "conflicts there will differ on a GPU"
    )


def _is_wider(widths: AccessWidths) -> bool:
    """Whether ptxas made accesses wider than in PTX, on average."""
    was, now = (
        sum(bits * count for bits, count in counts.items()) / max(sum(counts.values()), 1)
        for counts in (widths.ptx, widths.sass)
    )
    return now > was


def _lines(kind: str, own: Sequence[AccessWidths]) -> str:
    """`shared loads on 2 lines (a.cu:3, a.cu:5)`."""
    places = [f"{widths.file.rpartition('/')[2]}:{widths.line}" for widths in own[:_PLACES]]
    dots = ", ..." if len(own) > _PLACES else ""
    return f"{kind}s on {len(own)} line{'s' * (len(own) > 1)} ({', '.join(places)}{dots})"


def is_of_shared(evidence: EmulatedEvidence | None) -> bool:
    """Whether accesses of shared memory have other widths, so that its wavefronts are others."""
    return any(width.what.startswith("shared") for width in (evidence.widths if evidence else ()))
