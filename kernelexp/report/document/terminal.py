"""A document on a terminal, or in a pipe as if it had 80 columns: rich renderables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from kernelexp.model.text import printable
from kernelexp.report.document.document import (
    Block,
    Cell,
    Document,
    Heading,
    Items,
    Labelled,
    Listing,
    Paragraph,
    Span,
    Style,
    Table,
    text_of,
)

_RICH: dict[Style, str] = {
    "": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "broken": "bold red",
    "warn": "yellow",
    "info": "cyan",
    "limit": "magenta",
}


def render(document: Document) -> Iterator[RenderableType]:
    """Nothing in a document's texts can reach the terminal as an escape code."""
    for block in document:
        yield from _render(block)


def _render(block: Block) -> Iterator[RenderableType]:
    match block:
        case Heading(text=text):
            yield Text(printable(text), style="bold")
        case Paragraph(spans=spans, indent=indent):
            words = Text.assemble(*(_text(span) for span in spans))
            yield Padding(words, (0, 0, 0, indent), expand=False) if indent else words
        case Labelled(label=label, text=text):
            yield Text.assemble((f"{label}: ", "bold"), printable(text))
        case Items(items=items):
            for number, item in enumerate(items, 1):
                yield Padding(Text(f"{number}. {printable(item)}"), (0, 0, 0, 2), expand=False)
        case Table():
            yield _table(block)
        case Listing(text=text):
            yield Padding(Text(printable(text)), (0, 0, 0, 2), expand=False)


def _table(block: Table) -> RichTable:
    table = RichTable(
        *map(printable, block.header),
        box=box.SIMPLE_HEAD if any(block.header) else None,
        show_header=any(block.header),
        pad_edge=False,
        padding=(0, 1),
    )
    whole = _whole(block)
    for index, column in enumerate(table.columns):
        column.overflow = "fold"
        column.no_wrap = index in whole
        if index in block.numbers:
            column.justify = "right"
    gap, widths = _GAP, _words(block, _GAP, whole)
    if _breaks(block, widths, whole):
        table.padding = (0, 1, 0, 0)
        gap, widths = _NARROW_GAP, _words(block, _NARROW_GAP, whole)
    for column, width in zip(table.columns, widths, strict=True):
        column.min_width = width
    # rich takes from the widest columns what is missing, and then cuts the table.
    breaks = _breaks(block, widths, whole)
    caps = _levelled(block, gap, whole)
    if breaks or any(width > cap for width, cap in zip(widths, caps, strict=True)):
        widths = _shared(block, gap, whole) if breaks else _levelled(block, gap, whole, widths)
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
    for row in block.rows:
        table.add_row(*(_folded(cell, width) for cell, width in zip(row, widths, strict=False)))
    return table


_WIDTH = 80
_GAP = 3
_NARROW_GAP = 2
"""Between columns where words would be broken otherwise."""
_LONG = 24
"""Characters of a line that may be wrapped in a column of figures."""
_PIECE = re.compile(r".*?[=_/.:,](?=.)|.+")


def _whole(block: Table) -> set[int]:
    """The columns whose lines are not wrapped; not those whose long lines leave no room for the
    words of the others."""
    columns = range(len(block.header))
    whole = {*block.numbers, *block.unwrapped} & {*columns}
    lines = [_longest_line(block, index) for index in columns]
    words = [_longest(block, index, set()) for index in columns]
    room = _WIDTH - 2 - _NARROW_GAP * (len(columns) - 1)
    for index in sorted(whole, key=lambda index: -lines[index]):
        need = sum(lines[i] if i in whole else words[i] for i in columns)
        if need > room and lines[index] > _LONG and words[index] < lines[index]:
            whole.remove(index)
    return whole


def _breaks(block: Table, widths: Sequence[int], whole: Collection[int]) -> bool:
    """Whether some word is longer than its column is wide."""
    return any(_longest(block, index, whole) > width for index, width in enumerate(widths))


def _words(block: Table, gap: int, fixed: Collection[int]) -> list[int]:
    """The narrowest width of each column that breaks no word, in 80 columns if they all fit; else
    columns of long words share what is left of it."""
    columns = range(len(block.header))
    return _fitted([_longest(block, index, fixed) for index in columns], gap, fixed)


def _shared(block: Table, gap: int, fixed: Collection[int]) -> list[int]:
    """Widths that fill 80 columns, of a table with words that are broken anyway: the narrow columns
    have what they need."""
    columns = range(len(block.header))
    return _fitted([_longest_line(block, index) for index in columns], gap, fixed)


def _fitted(widths: list[int], gap: int, fixed: Collection[int]) -> list[int]:
    """Cuts the largest of the widths where 80 columns are too few; never those of fixed columns."""
    free = sorted((i for i in range(len(widths)) if i not in fixed), key=lambda i: widths[i])
    left = _WIDTH - 2 - gap * (len(widths) - 1) - sum(widths[i] for i in fixed)
    for place, index in enumerate(free):
        widths[index] = max(1, min(widths[index], left // (len(free) - place)))
        left -= widths[index]
    return widths


def _levelled(
    block: Table, gap: int, fixed: Collection[int], least: Sequence[int] = ()
) -> list[int]:
    """Widths that fill 80 columns where the wide columns are cut to one width, as rich cuts them,
    but not below the least."""
    lines = [_longest_line(block, index) for index in range(len(block.header))]
    left = _WIDTH - 2 - gap * (len(lines) - 1)

    def widths(level: int) -> list[int]:
        floors = least or [1] * len(lines)
        return [
            line if index in fixed else max(floor, min(line, level))
            for index, (line, floor) in enumerate(zip(lines, floors, strict=True))
        ]

    return max(
        (widths(level) for level in range(1, _WIDTH) if sum(widths(level)) <= left), default=lines
    )


def _longest(block: Table, index: int, whole: Collection[int]) -> int:
    """The longest word of a column, or its longest line where it is not wrapped."""
    if index in whole:
        return _longest_line(block, index)
    words = (len(word) for text in _texts(block, index) for word in text.split())
    return max(words, default=1)


def _longest_line(block: Table, index: int) -> int:
    return max(len(line) for text in _texts(block, index) for line in text.split("\n"))


def _texts(block: Table, index: int) -> list[str]:
    rows = (row[index] for row in block.rows if index < len(row))
    return [text_of(cell) for cell in (block.header[index], *rows)]


def _broken(word: str, width: int) -> str:
    """A long word in lines, broken after a sign of punctuation where there is one."""
    if len(word) <= width:
        return word
    lines = [""]
    for piece in _PIECE.findall(word):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _folded(cell: Cell, width: int) -> Text:
    text = _text(cell)
    if all(len(word) <= width for word in text.plain.split()):
        return text
    plain = re.sub(r"\S+", lambda match: _broken(match[0], width), text.plain)
    return Text(plain, style=text.style)


def _text(cell: Cell) -> Text:
    if isinstance(cell, Span):
        return Text(printable(cell.text), style=_RICH[cell.style])
    return Text(printable(cell))
