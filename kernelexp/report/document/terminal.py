"""A document on a terminal, or in a pipe as if it had 80 columns: rich renderables."""

from __future__ import annotations

from collections.abc import Iterator

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
    if any(block.header):
        table = RichTable(
            *map(printable, block.header), box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
        )
    else:
        table = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 1))
        for _ in block.header:
            table.add_column()
    for index, column in enumerate(table.columns):
        column.overflow = "fold"
        column.no_wrap = index in block.numbers or index in block.unwrapped
        if index in block.numbers:
            column.justify = "right"
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _text(cell: Cell) -> Text:
    if isinstance(cell, Span):
        return Text(printable(cell.text), style=_RICH[cell.style])
    return Text(printable(cell))
