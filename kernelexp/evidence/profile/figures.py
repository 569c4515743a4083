"""The numbers that ncu prints, in any locale and unit, to plain numbers in base units."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Literal

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
