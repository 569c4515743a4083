"""Output of a command as data: headings, paragraphs, tables, listings.

Commands build documents from evidence; terminal.py and markdown.py render any document. Texts here
are plain: what a terminal or a markdown file would take for markup is the renderers' to escape.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

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
