"""Which lanes of a warp access which banks or sectors, as a drawing of 32 columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from kernelexp.model.text import shorten
from kernelexp.report.document.document import Block, Heading, Listing, Span, grouped, paragraph
from kernelexp.services.memory_pictures import ATOMIC, MemoryPicture
from warpsim import AccessPattern

_ROWS = 8
"""Of a drawing: 32 equal rows teach no more than the first of them."""
_COLUMNS = 32
_HEAD = [f"{column:2}" if column % 4 == 0 else "  " for column in range(_COLUMNS)]


def render(pictures: Sequence[MemoryPicture], top: int) -> Iterator[Block]:
    """The accesses of each variant that cost more than they need, a drawing of each."""
    for picture in pictures:
        pictured = picture.pictured
        yield Heading(pictured.variant)
        if pictured.unsupported:
            yield paragraph(f"It was not executed: {pictured.unsupported}", style="warn")
            continue
        if picture.arm.build is None:
            yield paragraph("It did not build.", style="broken")
            continue
        groups = _alike(pictured.accesses)
        shown = groups[:top] if top else groups
        for access, count in shown:
            yield from _access(picture, access, count)
        if rest := len(groups) - len(shown):
            yield paragraph(
                f"{rest} more cost more than they need (`inspect --memory --top 0`).", style="dim"
            )
        what = f"{'other ' if groups else ''}loads and stores"
        words = "take no more wavefronts or sectors than their bytes need"
        isa = pictured.isa.upper()
        yield paragraph(f"{pictured.others} {what} {words}; executed: {isa}.", style="dim")


def _alike(accesses: Sequence[AccessPattern]) -> list[tuple[AccessPattern, int]]:
    """The first of those of one line that cost as much, and how many there are: an unrolled loop
    makes many."""
    groups = grouped(
        ((str(x.source), x.opcode, x.space, x.bytes_per_lane, x.cost, x.ideal), x) for x in accesses
    )
    return [(group[0], len(group)) for group in groups.values()]


def _access(picture: MemoryPicture, access: AccessPattern, count: int) -> Iterator[Block]:
    source = access.source.own() if access.source else None
    place = f"{source.file}:{source.line}" if source else "no source line"
    text = picture.texts.get(source.file, {}).get(source.line, "") if source else ""
    unit = "wavefronts" if access.space == "shared" else "sectors"
    times = f"{count} x " if count > 1 else ""
    cost = f"  {times}{access.opcode}: {access.cost} {unit}, {access.ideal} would do"
    yield paragraph(Span(place, "strong"), Span(cost, "bad"))
    if text.strip():
        yield paragraph(shorten(text.strip(), 76), indent=2, style="dim")
    yield paragraph(_rule(access), indent=2)
    yield Listing("\n".join(_drawing(access)))


def _rule(access: AccessPattern) -> str:
    """Says how the addresses go from lane to lane, if they all go alike."""
    known = [address for address in access.addresses if address is not None]
    steps = {after - before for before, after in itertools.pairwise(known)}
    way = "store" if access.store else "load"
    if access.opcode.upper().startswith(ATOMIC):
        way = "change"
    words = f"{len(known)} lanes {way} {access.bytes_per_lane} bytes each"
    if len(steps) == 1:
        (step,) = steps
        return f"{words}, {step:,} bytes apart{_banks(access, step)}."
    return f"{words}; the distance between lanes varies."


def _banks(access: AccessPattern, step: int) -> str:
    """The step between lanes in banks, modulo 32."""
    if access.space != "shared" or step % 4:
        return ""
    banks = (step // 4) % _COLUMNS
    return f", which is {banks} banks" if banks else ": all in one bank"


def _drawing(access: AccessPattern) -> Iterator[str]:
    """The first lane that touches a word, in the column of its bank or of its place in a line."""
    shared = access.space == "shared"
    head = "bank" if shared else "word"
    yield f"{head:>9} " + _cells(_HEAD, shared).rstrip()
    names = _names(access)
    for name, row in list(zip(names, access.rows, strict=True))[:_ROWS]:
        cells = [" ." if lane is None else f"{lane:2}" for lane in row]
        yield f"{name:>9} " + _cells(cells, shared)
    if len(access.rows) > _ROWS:
        yield f"{'':>9} and {len(access.rows) - _ROWS} more"


def _cells(cells: Sequence[str], shared: bool) -> str:
    """Two columns each; a bar between the sectors of a line."""
    if shared:
        return "".join(cells)
    return "|".join("".join(cells[at : at + 8]) for at in range(0, _COLUMNS, 8))


def _names(access: AccessPattern) -> list[str]:
    """Wavefronts are numbered within their phase; lines of global memory from the first."""
    if access.space != "shared":
        return [f"line {number}" for number in range(len(access.rows))]
    several = len(access.phases) > 1
    return [
        f"{f'{phase}.' if several else 'wave '}{number}"
        for phase, rows in enumerate(access.phases)
        for number in range(rows)
    ]
