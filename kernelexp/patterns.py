"""Regular expressions that projects write: matched in linear time, so that none can hang."""

from __future__ import annotations

from typing import Any


def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def complaint(pattern: str, *, with_group: bool) -> str:
    """What is wrong with a pattern, as a sentence; empty where nothing is.

    `with_group`: it must say which part of a match it is about.
    """
    import re2

    try:
        compiled = _compile(pattern)
    except re2.error as error:
        words = error.args[0].decode(errors="replace") if error.args else "it is too large"
        return f"this is not a regular expression of RE2: {words}."
    if with_group and not compiled.groups:
        return "this has no group: put the number in parentheses, as in 'time: ([0-9.]+) ms'."
    return ""


def matches(pattern: str, text: str) -> bool:
    return _compile(pattern).search(text) is not None


def last_group(pattern: str, text: str) -> str | None:
    """The first group of the last match; None where there is no match."""
    found = None
    for match in _compile(pattern).finditer(text):
        found = match.group(1)
    return found
