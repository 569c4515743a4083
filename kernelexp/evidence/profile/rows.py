"""The lines that ncu printed to rows of cells, without what else is in its output.

ncu quotes every cell and does not escape quotes inside one (a line of source has many), so what
parts two cells is `","`. Files that a spreadsheet or a script wrote anew are ordinary CSV.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

import msgspec

# A description that goes over more lines than this is a quote that was never closed.
_LINES_MAX = 200
_FIRST = ("ID", "Kernel Name", "File Path", "File Name", "Function Name", "Line No", "Address", "#")
"""The first cells of the headers of ncu's pages."""


class ProfileRow(msgspec.Struct, frozen=True):
    """The cells of one row."""

    cells: list[str]
    line: int
    """Where it begins, from 1."""
    cut: bool = False
    """The file ends within it; its last cell is left out."""


def read(lines: Iterable[str]) -> Iterator[ProfileRow]:
    """The rows of all tables, with their headers; the lines of ncu and of the program left out."""
    quoted, delimiter = True, ","
    inside = False
    for number, text in _whole(lines):
        first = text[:1]
        if _is_header(text):
            inside, quoted, delimiter = True, first == '"', _delimiter(text)
        if not inside:
            continue
        if text.startswith("==") or not text or (quoted and first != '"'):
            continue  # ncu's own messages, or what a program prints meanwhile
        yield _split(text, number, delimiter) if quoted else _plain(text, number, delimiter)


def _whole(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines by their number, without their ends; a quoted cell may go over several."""
    pending: list[str] = []
    begun = 0
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if number == 1:
            text = text.removeprefix("\ufeff")
        if pending and (
            text.startswith(('"', "==")) or len(pending) >= _LINES_MAX or _is_header(text)
        ):
            yield begun, "\n".join(pending)
            pending = []
        if pending:
            pending.append(text)
            if _is_closed(text):
                yield begun, "\n".join(pending)
                pending = []
        elif text.startswith('"') and not _is_closed(text):
            pending, begun = [text], number
        else:
            yield number, text
    if pending:
        # What follows a row that was cut off is not part of it.
        yield begun, pending[0] if len(pending) > 1 and not pending[-1] else "\n".join(pending)


def _is_closed(text: str) -> bool:
    return len(text) > 1 and text.endswith(('"', '",', '";', '"\t'))


def _is_header(text: str) -> bool:
    body = text.removeprefix('"')
    return body.startswith(_FIRST) and any(
        body.startswith((f'{name}"', f"{name},", f"{name};", f"{name}\t")) for name in _FIRST
    )


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _split(text: str, line: int, delimiter: str) -> ProfileRow:
    """A row of which every cell is quoted."""
    cells = text.split(f'"{delimiter}"')
    cells[0] = cells[0][1:]
    last = cells[-1]
    cut = not _is_closed(text) or text == '"'
    if cut:
        cells.pop()
    elif last.endswith('"'):
        cells[-1] = last[:-1]
    else:
        cells[-1:] = [last[:-2], ""]
    if text.count('"') > 2 * len(cells) + cut:
        try:
            (strict,) = csv.reader([text], delimiter=delimiter, strict=True)
            return ProfileRow(strict, line)
        except (csv.Error, ValueError):
            pass  # ncu's own quotes
    return ProfileRow(cells, line, cut)


def _plain(text: str, line: int, delimiter: str) -> ProfileRow:
    try:
        (cells,) = csv.reader([text], delimiter=delimiter)
    except (csv.Error, ValueError):
        cells = text.split(delimiter)
    return ProfileRow(cells, line)
