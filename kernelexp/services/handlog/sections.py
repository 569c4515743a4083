"""A markdown document as sections: heading, labelled texts, lists, tables, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

Role: TypeAlias = Literal["id", "title", "time", "tflops", "registers", "verdict", "date", "commit"]
"""What a column of a table has."""


class LogTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table: its cells as they are written, without emphasis."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class LabelledText(msgspec.Struct, frozen=True, kw_only=True):
    """`**Result:** 0.6 ms`, or a paragraph or list without such a label, which is empty then."""

    label: str
    text: str
    items: tuple[str, ...] = ()
    """Of the list that follows."""

    @property
    def whole(self) -> str:
        return "\n".join(filter(None, (self.text, *(f"- {item}" for item in self.items))))


class LogSection(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a log between a heading and the next."""

    title: str
    level: int
    """Of the heading; 0 for what comes before the first."""
    line: int
    """Of the heading, from 1."""
    texts: tuple[LabelledText, ...]
    tables: tuple[LogTable, ...]
    other: tuple[str, ...]
    """Code, quotations: their lines."""


def read(text: str) -> list[LogSection]:
    """The sections of a document in their order."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    lines = text.splitlines()
    starts = [i for i, token in enumerate(tokens) if token.type == "heading_open"]
    bounds = [0, *starts, len(tokens)]
    return [_section(tokens[first:end], lines) for first, end in pairwise(bounds) if first < end]


def _section(tokens: Sequence[Token], lines: Sequence[str]) -> LogSection:
    title, level, line = "", 0, 1
    if tokens[0].type == "heading_open":
        title, level = plain(tokens[1].content), int(tokens[0].tag[1:])
        line = (tokens[0].map or [0])[0] + 1
        tokens = tokens[3:]
    texts: list[LabelledText] = []
    tables: list[LogTable] = []
    other: list[str] = []
    for block in _blocks(tokens):
        kind = block[0].type
        if kind == "table_open":
            tables.append(_table(block))
        elif kind == "paragraph_open":
            texts += _labelled(block[1])
        elif kind in ("bullet_list_open", "ordered_list_open"):
            items = tuple(_items(block, lines))
            if texts and texts[-1].label and not texts[-1].items:
                texts[-1] = msgspec.structs.replace(texts[-1], items=items)
            else:
                texts.append(LabelledText(label="", text="", items=items))
        elif kind != "hr":
            first, end = block[0].map or (0, 0)
            other.append("\n".join(lines[first:end]))
    return LogSection(
        title=title,
        level=level,
        line=line,
        texts=tuple(texts),
        tables=tuple(tables),
        other=tuple(other),
    )


def _blocks(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens of one block each."""
    first = depth = 0
    for place, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            yield tokens[first : place + 1]
            first = place + 1


def _table(tokens: Sequence[Token]) -> LogTable:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(plain(token.content))
    return LogTable(header=tuple(rows[0]), rows=tuple(map(tuple, rows[1:])))


def _items(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[str]:
    """The items of a list, each on one line; lists inside of it are part of their item."""
    for token in tokens:
        if token.type == "list_item_open" and token.level == tokens[0].level + 1:
            first, end = token.map or (0, 0)
            text = " ".join(" ".join(lines[first:end]).split())
            marker = len(token.info) + len(token.markup)
            yield text[marker:].strip()


def _labelled(token: Token) -> Iterator[LabelledText]:
    """The lines of a paragraph: each begins a text of its own if it begins with a label."""
    label, text = "", ""
    children = [item for item in token.children or () if item.type != "text" or item.content]
    place, fresh = 0, True
    while place < len(children):
        child = children[place]
        if fresh and child.type == "strong_open" and (name := _label(children[place:])):
            if label or text.strip():
                yield LabelledText(label=label, text=text.strip())
            label, text = name[0], ""
            place += name[1]
            fresh = False
            continue
        fresh = child.type in ("softbreak", "hardbreak")
        text += _source(child)
        place += 1
    if label or text.strip():
        yield LabelledText(label=label, text=text.strip())


def _label(children: Sequence[Token]) -> tuple[str, int] | None:
    """The text of `**Label:**` or `**Label**:`, and its tokens; None where there is no colon."""
    end = next(i for i, child in enumerate(children) if child.type == "strong_close")
    name = "".join(_source(child) for child in children[1:end])
    if name.endswith(":"):
        return name[:-1].strip(), end + 1
    after = children[end + 1 : end + 2]
    if after and after[0].type == "text" and after[0].content.startswith(":"):
        after[0].content = after[0].content[1:]
        return name.strip(), end + 1
    return None


def _source(child: Token) -> str:
    if child.type == "code_inline":
        return f"`{child.content}`"
    if child.type in ("softbreak", "hardbreak"):
        return "\n"
    if child.type.startswith(("strong_", "em_")):
        return ""
    return child.content or child.markup


def plain(text: str) -> str:
    """A heading's or a cell's text without emphasis."""
    inline = MarkdownIt("commonmark").parseInline(text)
    return "".join(map(_source, inline[0].children or ())).strip() if inline else ""
