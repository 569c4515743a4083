"""What ncu prints: rows of cells, and plain numbers in base units from any locale and unit.

ncu quotes every cell and does not escape quotes inside one (a line of source has many), so what
parts two cells is `","`. Files that a spreadsheet or a script wrote anew are ordinary CSV.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

Mark = Literal[".", ","]
"""The decimal mark of a file."""

# Thousands are parted by the other mark, by a space of any width, or by an apostrophe.
_SPACES = " \u00a0\u2009\u202f'\u2019"


def _shape(mark: Mark) -> re.Pattern[str]:
    other = "," if mark == "." else "."
    return re.compile(
        rf"[+-]?(?:[1-9]\d{{0,2}}(?:[{other}{_SPACES}]\d{{3}})+|\d+)(?:{re.escape(mark)}\d+)?"
        r"(?:[eE][+-]?\d{1,3})?",
        re.ASCII,
    )


_SHAPES: dict[Mark, re.Pattern[str]] = {".": _shape("."), ",": _shape(",")}
_NONE = frozenset({"", "-", "n/a", "no data", "nan", "-nan", "inf", "-inf", "none"})
_INSTANCES = re.compile(r"(.*?)\s?\((.*)\)", re.DOTALL)


def is_none(text: str) -> bool:
    """Whether ncu printed that it has no figure: n/a, no data, nan."""
    return text.removeprefix("(!)").strip().lower() in _NONE


def decimal_mark(texts: Iterable[str]) -> Mark:
    """A comma if some number can only be read so and none only with a point; else a point."""
    point, comma = _SHAPES["."].fullmatch, _SHAPES[","].fullmatch
    has_comma = False
    for text in texts:
        if not text.isdecimal():
            with_point, with_comma = point(text), comma(text)
            if with_point and not with_comma:
                return "."
            has_comma = has_comma or bool(with_comma and not with_point)
    return "," if has_comma else "."


def number(text: str, mark: Mark = ".") -> float | None:
    """A number, by the file's decimal mark where both would do; None where it is not a number."""
    text = text.strip()
    if text.isdecimal() and text.isascii() and len(text) < 16:
        return float(text)
    marks: tuple[Mark, Mark] = (".", ",") if mark == "." else (",", ".")
    for item in marks:
        if _SHAPES[item].fullmatch(text):
            for space in (*_SPACES, "," if item == "." else "."):
                text = text.replace(space, "")
            value = float(text.replace(",", "."))
            return value if abs(value) < float("inf") else None
    return None


def instances(text: str, mark: Mark = ".") -> tuple[float, dict[str, float]] | None:
    """`1,234 (LDS: 1,000; LDL: 234)`, a metric with its instances; None where it is none.

    Instances without names are named by their position from 0.
    """
    match = _INSTANCES.fullmatch(text.strip())
    total = number(match[1], mark) if match else None
    if match is None or total is None:
        return None
    by_instance = {}
    for index, part in enumerate(match[2].split("; ")):
        name, _, value = part.rpartition(": ")
        if (figure := number(value, mark)) is not None:
            by_instance[name or str(index)] = figure
    return total, by_instance


# ---- units ---------------------------------------------------------------------------------------

_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {prefix: 1024.0**power for power, prefix in enumerate(_PREFIXES, 1)}
_SECONDS = {
    **dict.fromkeys(("s", "second"), 1.0),
    **dict.fromkeys(("ms", "msecond"), 1e-3),
    **dict.fromkeys(("us", "usecond"), 1e-6),
    **dict.fromkeys(("ns", "nsecond"), 1e-9),
}
_PREFIXED = re.compile(r"([KMGTP])(i(?=byte))?([a-z]+)")
_SAME = {"bytes": "byte", "Hz": "hz", "sectors": "sector"}


@functools.cache
def base(unit: str) -> tuple[float, str]:
    """Returns the factor that converts `unit` to ncu's base unit, and that unit.

    Times become ns, rates are per s; prefixes of other units are decimal, as ncu's are.
    """
    above, slash, below = unit.strip().partition("/")
    factor, word = _without_prefix(above)
    if above in _SECONDS:
        factor, word = _SECONDS[above] * 1e9, "ns"
    if not slash:
        return factor, word
    divisor, per = _without_prefix(below)
    if below in _SECONDS:
        divisor, per = _SECONDS[below], "s"
    return factor / divisor, f"{word}/{per}"


def _without_prefix(word: str) -> tuple[float, str]:
    match = _PREFIXED.fullmatch(word)
    if match is None:
        return 1.0, _SAME.get(word, word)
    factor = (_BINARY if match[2] else _PREFIXES)[match[1]]
    return factor, _SAME.get(match[3], match[3])


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
