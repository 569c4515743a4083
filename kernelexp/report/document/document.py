"""Output of a command as data: headings, paragraphs, tables, listings; and as markdown.

Commands build documents from evidence; as_markdown() and terminal.py render any document. Texts
here are plain: what a terminal or markdown would take for markup is the renderers' to escape."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from kernelexp.model import text
from kernelexp.model.arm import Status

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Style: TypeAlias = Literal["", "strong", "dim", "good", "bad", "broken", "warn", "info", "limit"]


class Span(msgspec.Struct, frozen=True):
    """A run of text of one style; the words say the same without it."""

    text: str
    style: Style = ""


Cell: TypeAlias = str | Span


class Heading(msgspec.Struct, frozen=True, tag=True):
    """A title; level 1 is the document's own."""

    text: str
    level: int = 1


class Paragraph(msgspec.Struct, frozen=True, tag=True):
    """Running text; `indent` is in columns, for a terminal."""

    spans: tuple[Span, ...]
    indent: int = 0


class Labelled(msgspec.Struct, frozen=True, tag=True):
    """A label with a text that may have several paragraphs of its own."""

    label: str
    text: str


class Items(msgspec.Struct, frozen=True, tag=True):
    """A numbered list."""

    items: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, tag=True):
    """Rows under a header; columns in `numbers` are aligned right and never wrapped."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: frozenset[int] = frozenset()
    unwrapped: frozenset[int] = frozenset()


class Listing(msgspec.Struct, frozen=True, tag=True):
    """Another program's words, as they are."""

    text: str


Block: TypeAlias = Heading | Paragraph | Labelled | Items | Table | Listing
Document: TypeAlias = Iterable[Block]


def paragraph(*parts: Cell, style: Style = "", indent: int = 0) -> Paragraph:
    """Texts and spans in a row; `style` is that of the texts."""
    spans = (part if isinstance(part, Span) else Span(part, style) for part in parts)
    return Paragraph(tuple(spans), indent)


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    numbers: Iterable[int] = (),
    unwrapped: Iterable[int] = (),
    shown: Iterable[int] | None = None,
) -> Table:
    """A table from any sequences; `shown` are the columns that it has, all unless given."""
    cells = tuple(tuple(row) for row in rows)
    whole = Table(tuple(header), cells, frozenset(numbers), frozenset(unwrapped))
    if shown is None:
        return whole
    places = {column: place for place, column in enumerate(shown)}
    return Table(
        tuple(header[column] for column in places),
        tuple(tuple(row[column] for column in places) for row in cells),
        frozenset(places[column] for column in whole.numbers if column in places),
        frozenset(places[column] for column in whole.unwrapped if column in places),
    )


def filled(rows: Sequence[Sequence[Cell]]) -> list[int]:
    """The columns in which some row has something."""
    return [index for index, cells in enumerate(zip(*rows, strict=True)) if any(cells)]


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Groups values by key, keys in the order in which they first come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def text_of(cell: Cell) -> str:
    return cell.text if isinstance(cell, Span) else cell


_STYLES: dict[Status, Style] = {
    Status.IMPROVED: "good",
    Status.REJECTED: "bad",
    Status.INCORRECT: "broken",
    Status.BUILD_FAILED: "broken",
    Status.CRASHED: "broken",
    Status.TIMED_OUT: "broken",
    Status.IMPOSSIBLE: "limit",
    Status.INCONCLUSIVE: "warn",
    Status.INVALID: "warn",
    Status.UNMEASURED: "info",
}


def status(value: Status) -> Span:
    """A verdict's word in its colour."""
    return Span(value.value, _STYLES.get(value, ""))


def as_markdown(document: Document) -> str:
    """Blocks with a blank line between them; no text can add to the structure."""
    return "\n\n".join(part for block in document if (part := _block_as_markdown(block))) + "\n"


def _block_as_markdown(block: Block) -> str:
    match block:
        case Heading(text=title, level=level):
            return f"{'#' * level} {_line(title)}"
        case Paragraph(spans=spans):
            return "".join(map(_span_as_markdown, spans)).strip()
        case Labelled(label=label, text=words):
            return f"**{label}:** {text.markdown(words.strip())}".rstrip()
        case Items(items=items):
            return "\n".join(f"{number}. {_line(item)}" for number, item in enumerate(items, 1))
        case Table():
            return _table_as_markdown(block)
        case Listing(text=words):
            return "\n".join(f"    {line}" for line in text.printable(words).splitlines())


def _span_as_markdown(span: Span) -> str:
    """Escaped, with the space around it as it is."""
    words = span.text.strip()
    before, _, after = span.text.partition(words) if words else (span.text, "", "")
    escaped = f"**{_line(words)}**" if span.style == "strong" else text.markdown(words)
    return f"{before}{escaped if words else ''}{after}"


def _table_as_markdown(block: Table) -> str:
    from tabulate import tabulate

    rows = [
        [_line(text_of(cell)).replace("\\|", "|").replace("|", "\\|") for cell in row]
        for row in block.rows
    ]
    return tabulate(rows, headers=block.header, tablefmt="github", disable_numparse=True)


_line = text.markdown_line
