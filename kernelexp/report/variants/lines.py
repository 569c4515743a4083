"""Cost by source line and by role: the page of `kernelexp inspect --lines`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from kernelexp.facts import widths
from kernelexp.judge import verdict
from kernelexp.model.text import shorten
from kernelexp.report.document.document import Block, Document, Listing, Span, paragraph, table
from kernelexp.services.lines import costs, service
from kernelexp.services.lines.costs import FIGURES, CostFigure, Costs
from kernelexp.services.lines.pieces import Piece, PieceInstruction
from kernelexp.services.lines.service import Lines

WIDTH = 78
_BAR = 12
_NO_BAR = " " * 6
_INDENT = "    "
_EIGHTHS = " ▏▎▍▌▋▊▉"
_REASONS = 4


def render(
    every: Sequence[Lines],
    by: str | None,
    top: int,
    role: str | None = None,
    sass: bool = False,
    markdown: bool = False,
) -> Document:
    """The variants one after the other, the lines of each ranked by a figure.

    top: how many lines to show, 0 for all. UsageError for an unknown figure or role.
    """
    for lines in every:  # a mistake is said before anything is printed
        if lines.pieces:
            service.rank(lines, by, role)
    for number, lines in enumerate(every):
        if number:
            yield paragraph("")
        yield paragraph(Span(lines.label, "strong"))
        yield from _conditions(lines)
        if not lines.pieces:
            continue
        figure, pieces = service.rank(lines, by, role)
        total = costs.add(piece.costs for piece in lines.pieces)
        yield from _roles(lines, total)
        yield from _ranking(lines, figure, pieces, total, top, role, sass, markdown)
        yield from _hints(lines)


def _ranking(
    lines: Lines,
    figure: CostFigure,
    pieces: Sequence[Piece],
    total: Costs,
    top: int,
    role: str | None,
    sass: bool,
    markdown: bool,
) -> Iterator[Block]:
    whose = f" that {service.resolve_role(lines, role)} runs" if role else ""
    if not pieces:
        yield paragraph(f"No line{whose} has {figure.name} ({figure.how(lines.isa)}).")
        return
    shown = pieces[: top or None]
    yield paragraph(
        f"{len(shown)} of {len(pieces)} line{'s' * (len(pieces) > 1)}{whose}, by {figure.name} "
        f"({figure.how(lines.isa)}); {_compact(figure.read(total))} in all"
        f"{' roles' if role else ''}."
    )
    others = (other for other in FIGURES.values() if other.name != figure.name)
    columns = [other for other in others if other.read(total)]
    if markdown:
        yield _table(lines, shown, figure, columns, total)
        if sass:
            yield from (_sass_of(lines, piece, total) for piece in shown if piece.instructions)
    else:
        rows = _listing(lines, shown, figure, columns, total, sass)
        yield Listing("\n".join(["", *rows, ""]))


def _conditions(lines: Lines) -> Iterator[Block]:
    """The conditions of the figures, and reasons to doubt them."""
    arm, profile = lines.arm, lines.profile
    if arm.refused:
        yield paragraph(f"{arm.refused.status}. {arm.refused.sentence}", style="warn")
    yield from _emulated(lines)
    if profile and profile.arm.profiled:
        taken = profile.arm.profiled
        size = f", size {taken.size}" if taken.size else ""
        device = f", {taken.device}" if taken.device else ""
        yield paragraph(f"Profiled, {profile.run}{device}{size}: {_names('profiled')}.")
        if not lines.by_offset:
            yield paragraph(
                "The profile is of other code than this build: its samples are shown at the lines "
                "that it names itself, if any, and without roles.",
                style="warn",
            )


def _emulated(lines: Lines) -> Iterator[Block]:
    arm = lines.arm
    judged = arm.emulated or arm.emulated_sass
    if judged is None:
        return
    if judged.unsupported:
        yield paragraph(f"Not emulated. {judged.unsupported}", style="warn")
        return
    yield paragraph(
        f"Emulated, one launch of size {lines.size}, counted on {lines.isa.upper()}: "
        f"{_names('emulated')}."
    )
    if arm.emulated_sass and (why := arm.emulated_sass.unsupported):
        yield paragraph(f"SASS not executed: {why}", style="dim")
    if disagreement := verdict.disagreement(arm):
        yield paragraph(f"Emulated: {disagreement.sentence}.", style="warn")
    if lines.isa == "ptx" and (words := widths.summarize(arm.emulated)):
        yield paragraph(f"Emulated: {words}.", style="warn")


def _names(kind: str) -> str:
    return ", ".join(figure.name for figure in FIGURES.values() if figure.kind == kind)


def _hints(lines: Lines) -> Iterator[Block]:
    """The commands that supply what is missing."""
    if not lines.profile:
        yield paragraph(
            "No stalls: no profile of this variant has a source page; kernelexp profile takes one "
            "on a GPU, or imports one.",
            style="dim",
        )
    if not lines.roles and lines.arm.build:
        yield paragraph(
            "No roles: they come from an emulation, which this variant does not have; kernelexp "
            "emulate says why.",
            style="dim",
        )


# ---- roles ---------------------------------------------------------------------------------------


def _roles(lines: Lines, total: Costs) -> Iterator[Block]:
    """A column for each role, what it has of each figure and how much of all that is."""
    if len(lines.roles) == 1:
        yield paragraph(f"Roles: one, all {lines.roles[0].where} run the same code.")
    if len(lines.roles) < 2:
        return
    columns = service.role_costs(lines)
    rows = [("warps", *(where for _, where, _ in columns))]
    for figure in FIGURES.values():
        if whole := figure.read(total):
            cells = (
                f"{_compact(value)} {100 * value / whole:3.0f}%" if value else "-"
                for value in (figure.read(item) for _, _, item in columns)
            )
            rows.append((figure.label(lines.isa), *cells))
    header = ("role", *(name for name, _, _ in columns))
    yield table(header, rows, numbers=range(1, len(header)), unwrapped=[0])


# ---- lines ---------------------------------------------------------------------------------------


def _where(piece: Piece) -> str:
    return f"{piece.file.rpartition('/')[2]}:{piece.line}" if piece.file else "-"


def _whose(lines: Lines, piece: Piece) -> str:
    if len(lines.roles) < 2:
        return ""
    names = [role.name for role in lines.roles if role.name in piece.roles]
    return ", ".join(names) or service.NOT_RUN


def _other_widths(lines: Lines, piece: Piece) -> list[str]:
    if lines.isa == "sass":
        return []
    every = widths.of_line(lines.arm.emulated, piece.file, piece.line)
    return [widths.spell(one) for one in every]


def _table(
    lines: Lines,
    shown: Sequence[Piece],
    figure: CostFigure,
    columns: Sequence[CostFigure],
    total: Costs,
) -> Block:
    """Tabulates lines for markdown, which has no width."""
    whole = figure.read(total)
    rows = [
        (
            _where(piece),
            lines.text(piece),
            _whose(lines, piece),
            _number(figure.read(piece.costs)),
            f"{100 * figure.read(piece.costs) / whole:.0f}%" if whole else "",
            *(_number(other.read(piece.costs)) for other in columns),
            _reasons(piece.costs),
            "; ".join(_other_widths(lines, piece)),
        )
        for piece in shown
    ]
    names = [column.label(lines.isa) for column in columns]
    header = ("line", "source", "role", figure.label(lines.isa), "of all", *names)
    header = (*header, "stalled for", "widths")
    last = len(header) - 1
    optional = {
        2: len(lines.roles) > 1,
        last - 1: bool(total.profiled),
        last: any(row[last] for row in rows),
    }
    kept = [column for column in range(len(header)) if optional.get(column, True)]
    return table(header, rows, range(3, last - 1), shown=kept)


def _listing(
    lines: Lines,
    shown: Sequence[Piece],
    figure: CostFigure,
    columns: Sequence[CostFigure],
    total: Costs,
    sass: bool,
) -> Iterator[str]:
    """Yields for each line its figures with a bar, its text, and what it was stalled for."""
    whole = figure.read(total)
    first = [_compact(figure.read(item.costs)) for item in shown]
    wide = max(len(figure.name), *map(len, first))
    used = wide + 2 + _BAR + 5
    others: list[tuple[CostFigure, list[str], int]] = []
    for column in columns:
        values = [_compact(column.read(piece.costs)) for piece in shown]
        width = max(len(column.name), *map(len, values))
        if any(value != "0" for value in values) and used + 2 + width <= WIDTH:
            others.append((column, values, width))
            used += 2 + width
    named = [figure, *(other for other, _, _ in others)]
    heads = [(other.source(lines.isa), other.name) for other in named]
    for first_head, *rest_heads in zip(*heads, strict=True):
        rest = "".join(f"  {head:>{others[i][2]}}" for i, head in enumerate(rest_heads))
        yield f"{first_head:>{wide}}{'':{2 + _BAR + 5}}{rest}"
    for index, piece in enumerate(shown):
        share = figure.read(piece.costs) / whole if whole else 0.0
        rest = "".join(f"  {values[index]:>{width}}" for _, values, width in others)
        yield f"{first[index]:>{wide}}  {bar(share)} {100 * share:3.0f}%{rest}"
        yield shorten(f"    {_where(piece)}  {lines.text(piece)}", WIDTH)
        notes = [_whose(lines, piece), _reasons(piece.costs)]
        if any(notes):
            yield shorten("    " + "; ".join(filter(None, notes)), WIDTH)
        for words in _other_widths(lines, piece):
            yield textwrap.fill(words, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        if sass:
            yield from _instructions(piece.instructions, total)


def _instructions(instructions: Sequence[PieceInstruction], total: Costs) -> Iterator[str]:
    """Below a heading offset, pipe, text, where emulated how often it was executed, and where
    profiled the samples."""
    whole = total.profiled.get(costs.SAMPLES, 0.0)
    is_counted = any(one.executed is not None for one in instructions)
    heads = f"{' executed' if is_counted else ''}{f'  stalls {_NO_BAR}' if whole else ''}"
    yield f"{'      offset pipe     SASS':<{WIDTH - len(heads)}}{heads}".rstrip()
    for instruction in instructions:
        samples = instruction.profiled.get(costs.SAMPLES, 0.0)
        stalls = f"  {_compact(samples):>6} {bar(samples / whole, 6)}" if whole else ""
        executed = "" if instruction.executed is None else f" {_compact(instruction.executed):>8}"
        rest = f"{executed}{stalls}"
        text = shorten(
            f"      {instruction.offset:05x}  {instruction.pipe:<8} {instruction.text}",
            WIDTH - len(rest),
        )
        yield f"{text:<{WIDTH - len(rest)}}{rest}".rstrip()


def _sass_of(lines: Lines, piece: Piece, total: Costs) -> Block:
    rows = [
        f"{_where(piece)}  {lines.text(piece)}",
        *_instructions(piece.instructions, total),
    ]
    return Listing("\n".join(rows))


def _reasons(found: Costs) -> str:
    """`long_sb 61%, wait 20%`: ncu's reasons, of the samples that have one."""
    stalls = found.stalls
    whole = sum(stalls.values())
    shares = [(name, 100 * value / whole) for name, value in stalls.items()]
    return ", ".join(f"{name} {share:.0f}%" for name, share in shares[:_REASONS] if share >= 1)


def bar(share: float, width: int = _BAR) -> str:
    """A bar of `width` columns for a share of 0 to 1, to an eighth of a column."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _compact(value: float) -> str:
    """Up to six columns: 99,999, then 123K, 1.23M."""
    if value < 99_999.5:
        return _number(value)
    for unit, size in (("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if value < 999.5 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.2e}"
