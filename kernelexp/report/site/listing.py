"""Source beside PTX and SASS, of one variant or several, as a page of its own."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.evidence.code import ptx_lines
from kernelexp.evidence.code.ptx_lines import PtxInstruction
from kernelexp.model.modelled import ModelledLine, ModelledRun
from kernelexp.report.document import figures
from kernelexp.report.site import rendering
from kernelexp.report.site.code import HeatCell, Place
from kernelexp.services.lines import costs, pieces
from kernelexp.services.lines.costs import Costs
from kernelexp.services.lines.pieces import PieceInstruction
from kernelexp.services.lines.service import Lines

_SHADES = 5
_REGISTER = re.compile(r"\bU?[RP]\d+")
_DIFFERENCE_MAX = 20_000
"""Instructions of two listings together that are compared; 20,000 take 2 s."""


class VariantListing(msgspec.Struct, frozen=True, kw_only=True):
    """A variant's code: its lines with their costs, and its PTX."""

    name: str
    """What columns are headed with: `1`, `baseline`; empty for a variant by itself."""
    lines: Lines
    ptx: tuple[PtxInstruction, ...] = ()
    modelled: tuple[ModelledLine, ...] = ()
    """Where the model of time has the cycles of warps; none where it was not asked."""


class _HeatColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of lines, of each variant."""

    name: str
    how: str
    costs: tuple[Mapping[Place, float], ...]


class ListedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a source."""

    number: int
    text: str
    at: str
    """What instructions of this line are marked with."""
    heats: tuple[tuple[HeatCell, ...], ...]
    """Of each variant, by figure."""


class ListedInstruction(msgspec.Struct, frozen=True, kw_only=True):
    """An instruction of a listing."""

    at: str
    """The line that it is of; empty for none."""
    place: str = ""
    """Its offset in hexadecimal; empty for PTX."""
    text: str
    executed: str = ""
    stalls: HeatCell = HeatCell("", 0)
    differs: bool = False
    """From the first variant's."""


class ListedCode(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions of one variant in one instruction set."""

    title: str
    is_sass: bool
    rows: tuple[ListedInstruction, ...]

    @property
    def leading(self) -> set[int]:
        """The positions at which each line comes up first."""
        return set({row.at: n for n, row in reversed([*enumerate(self.rows)]) if row.at}.values())


def page(
    listings: Sequence[VariantListing],
    title: str,
    live: bool = False,
    root: str = "",
    of: str = "",
) -> bytes:
    """One HTML file; the first listing is what the others are compared with.

    root, of: in a project's site, the way to its first page, and the experiment.
    """
    spent = [_by_line(listing.lines) for listing in listings]
    columns = tuple(_columns(listings, spent))
    files = {file: number for number, file in enumerate(_files(listings, spent))}
    codes = [_sass(listing, files, listings[0]) for listing in listings]
    codes += [_ptx(listing, files) for listing in listings if listing.ptx]
    return rendering.render(
        "listing.html",
        live=live,
        title=title,
        root=root,
        of=of,
        variants=[(listing.name, _heading(listing)) for listing in listings],
        figures=[(column.name, column.how) for column in columns],
        sources=[(file, _source(file, listings, columns, files)) for file in files],
        codes=codes,
    )


def listed(
    root: Path, name: str, lines: Lines, modelled: ModelledRun | None = None
) -> VariantListing:
    """Returns what was kept of the variant's build in the project at `root`, beside its costs."""
    arm, known = lines.arm, modelled.time.lines if modelled else ()
    if arm.build is None or not arm.identity:
        return VariantListing(name=name, lines=lines, modelled=known)
    ptx = build.artefacts(root, arm.identity).ptx
    text = ptx.read_text("utf-8", "replace") if ptx else ""
    instructions = ptx_lines.read(text, arm.build.entry)
    return VariantListing(name=name, lines=lines, ptx=instructions, modelled=known)


def _heading(listing: VariantListing) -> str:
    lines = listing.lines
    profile = f"stalls from profile {lines.profile.run}" if lines.profile else "no profile"
    counted = f"counted on {lines.isa.upper()} at size {lines.size}"
    return f"{lines.label}: {counted}, {profile}{', modelled' if listing.modelled else ''}"


def _columns(
    listings: Sequence[VariantListing], spent: Sequence[Mapping[Place, Costs]]
) -> Iterator[_HeatColumn]:
    """Those that have any figure."""
    for figure in costs.FIGURES.values():
        read = [{place: figure.read(cost) for place, cost in lines.items()} for lines in spent]
        if any(value > 0 for lines in read for value in lines.values()):
            how = figure.how(listings[0].lines.isa)
            yield _HeatColumn(name=figure.name, how=how, costs=tuple(read))
    if any(listing.modelled for listing in listings):
        per_mille = tuple(map(_modelled, listings))
        yield _HeatColumn(name="modelled", how="per mille of warps' cycles", costs=per_mille)


def _modelled(listing: VariantListing) -> dict[Place, float]:
    result: dict[Place, float] = defaultdict(float)
    for line in listing.modelled:
        if own := line.source and line.source.own():
            result[own.file, own.line] += 1000 * line.part
    return result


def _by_line(lines: Lines) -> dict[Place, Costs]:
    return {
        (piece.file, piece.line): piece.costs
        for piece in pieces.by_line(lines.pieces)
        if piece.file
    }


def _files(listings: Sequence[VariantListing], spent: Sequence[Mapping[Place, Costs]]) -> list[str]:
    """The files with costs whose text is known, the one with most code first."""
    code: dict[str, int] = {}
    for lines in spent:
        for (file, _), cost in lines.items():
            code[file] = code.get(file, 0) + cost.sass
    known = {file for listing in listings for file in listing.lines.texts}
    return sorted(code.keys() & known, key=lambda file: -code[file])


def _source(
    file: str,
    listings: Sequence[VariantListing],
    columns: Sequence[_HeatColumn],
    files: Mapping[str, int],
) -> tuple[ListedLine, ...]:
    text = next(listing.lines.texts[file] for listing in listings if file in listing.lines.texts)
    most = [max(max(lines.values(), default=0.0) for lines in c.costs) for c in columns]
    return tuple(
        ListedLine(
            number=number,
            text=line,
            at=f"{files[file]}-{number}",
            heats=tuple(
                tuple(
                    _heat(column.costs[variant].get((file, number), 0.0), most[place])
                    for place, column in enumerate(columns)
                )
                for variant in range(len(listings))
            ),
        )
        for number, line in sorted(text.items())
    )


def _heat(value: float, most: float) -> HeatCell:
    if value <= 0 or round(value) == 0:
        return HeatCell("", 0)
    return HeatCell(figures.value(int(value)), max(1, round(_SHADES * value / most)))


def _sass(listing: VariantListing, files: Mapping[str, int], first: VariantListing) -> ListedCode:
    own, base = _instructions(listing.lines), _instructions(first.lines)
    differing = set() if listing is first else _differing(own, base)
    most = max((_stalls(instruction) for _, instruction in own), default=0.0)
    rows = (
        ListedInstruction(
            at=_at(place, files),
            place=f"{instruction.offset:05x}",
            text=instruction.text,
            executed=figures.value(instruction.executed) if instruction.executed else "",
            stalls=_heat(_stalls(instruction), most),
            differs=number in differing,
        )
        for number, (place, instruction) in enumerate(own)
    )
    return ListedCode(title=f"SASS{_of(listing)}", is_sass=True, rows=tuple(rows))


def _of(listing: VariantListing) -> str:
    return f" of {listing.name}" if listing.name else ""


def _instructions(lines: Lines) -> list[tuple[Place, PieceInstruction]]:
    every = [
        ((piece.file, piece.line), instruction)
        for piece in lines.pieces
        for instruction in piece.instructions
    ]
    return sorted(every, key=lambda item: item[1].offset)


def _stalls(instruction: PieceInstruction) -> float:
    return instruction.profiled.get(costs.SAMPLES, 0.0)


def _differing(
    own: Sequence[tuple[Place, PieceInstruction]], base: Sequence[tuple[Place, PieceInstruction]]
) -> set[int]:
    """Positions of instructions that the base lacks, whatever registers they name."""
    if len(own) + len(base) > _DIFFERENCE_MAX:
        return set()
    before, after = ([_REGISTER.sub("R", x.text) for _, x in code] for code in (base, own))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed = (code for code in matcher.get_opcodes() if code[0] != "equal")
    return {number for _, _, _, start, end in changed for number in range(start, end)}


def _ptx(listing: VariantListing, files: Mapping[str, int]) -> ListedCode:
    rows = (
        ListedInstruction(at=_at(_known(instruction, files), files), text=instruction.text)
        for instruction in listing.ptx
    )
    return ListedCode(title=f"PTX{_of(listing)}", is_sass=False, rows=tuple(rows))


def _known(instruction: PtxInstruction, files: Iterable[str]) -> Place:
    """Returns a place by the path from the project's root, which the compiler's path ends with."""
    own = next((file for file in files if instruction.file.endswith(f"/{file}")), instruction.file)
    return own, instruction.line


def _at(place: Place, files: Mapping[str, int]) -> str:
    """No line is 0: the compiler's own code has it."""
    return f"{files[place[0]]}-{place[1]}" if place[0] in files and place[1] else ""
