"""A document as markdown; the same document gives the same bytes."""

from __future__ import annotations

from tabulate import tabulate

from kernelexp.model import text
from kernelexp.report.document.document import (
    Block,
    Document,
    Heading,
    Items,
    Labelled,
    Listing,
    Paragraph,
    Span,
    Table,
    text_of,
)


def render(document: Document) -> str:
    """Blocks with a blank line between them; no text can add to the structure."""
    return "\n\n".join(part for block in document if (part := _render(block))) + "\n"


def _render(block: Block) -> str:
    match block:
        case Heading(text=title, level=level):
            return f"{'#' * level} {_line(title)}"
        case Paragraph(spans=spans):
            return "".join(map(_span, spans)).strip()
        case Labelled(label=label, text=words):
            return f"**{label}:** {text.markdown(words.strip())}".rstrip()
        case Items(items=items):
            return "\n".join(f"{number}. {_line(item)}" for number, item in enumerate(items, 1))
        case Table():
            return _table(block)
        case Listing(text=words):
            return "\n".join(f"    {line}" for line in text.printable(words).splitlines())


def _span(span: Span) -> str:
    """Escaped, with the space around it as it is."""
    words = span.text.strip()
    before, _, after = span.text.partition(words) if words else (span.text, "", "")
    escaped = f"**{_line(words)}**" if span.style == "strong" else text.markdown(words)
    return f"{before}{escaped if words else ''}{after}"


def _table(block: Table) -> str:
    rows = [
        [_line(text_of(cell)).replace("\\|", "|").replace("|", "\\|") for cell in row]
        for row in block.rows
    ]
    return tabulate(rows, headers=block.header, tablefmt="github", disable_numparse=True)


_line = text.markdown_line
