"""Expectations of an experiment on a figure, as they are written: `-30%`, `< 4096`, `unchanged`.

With a sign, an expectation is a change from the baseline, in percent or in the figure's own unit;
without, it is the candidate's value.

    -30%         at least that much less than the baseline; +30%: at least that much more
    ~-30%        about that: within a quarter of it, here -22.5% to -37.5%
    >= +5%       a change beyond a bound; also <, <= and >
    -3%..+1%     a change within a range, its ends included
    +4           the same for differences: at least 4 more; ~+4, <= +4, +0.1..+0.3
    < 4096       the candidate's value; also <=, >, >=, ==, !=, and 16..32
    unchanged    the baseline's value: exactly where it is counted, within the margin where measured
"""

from __future__ import annotations

import math
import re
from typing import Literal, TypeAlias

import msgspec

from kernelexp.model.text import quote, shorten

Basis: TypeAlias = Literal["value", "difference", "change"]

ABOUT = 0.25
"""What `~` allows: this share of the expected figure, to either side."""
UNCHANGED = "unchanged"

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*%?"
_ONE = re.compile(rf"(?P<operator>~|<=|>=|==|!=|<|>)?\s*(?P<number>{_NUMBER})", re.ASCII)
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})", re.ASCII)
_HELP = (
    "write a change, as in -30%, ~+8%, >= +5%, -3%..+1% or +4, a condition on the candidate's "
    "value, as in < 4096 or == 0, or unchanged"
)


_MINUSES = re.compile("[\u2010-\u2015\u2212\ufe63\uff0d]")


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """A range for a candidate's value, or for its change from the baseline."""

    text: str
    """As it is written."""
    basis: Basis
    """The candidate's value, candidate - baseline, or that as a share of the baseline."""
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    """The ends themselves do not meet it."""
    other: bool = False
    """Anything but `low` (which is `high`) meets it."""

    def misses_by(self, actual: float) -> float:
        """Returns how far `actual` is from meeting this; 0 where it does or only hits an end."""
        return max(self.low - actual, actual - self.high, 0.0)

    def is_met(self, actual: float) -> bool:
        if self.other:
            return actual != self.low
        if self.strict:
            return self.low < actual < self.high
        return self.low <= actual <= self.high


class _Number(msgspec.Struct, frozen=True):
    value: float
    signed: bool
    percent: bool


def parse(text: str) -> Expectation:
    """ValueError with a sentence where `text` is none; see this module for what it may be."""
    if text.strip() == UNCHANGED:
        return Expectation(text=UNCHANGED, basis="difference", low=0, high=0)
    if match := _RANGE.fullmatch(text.strip()):
        return _range(text, _number(match["low"]), _number(match["high"]))
    match = _ONE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{quote(text)} is not an expectation: {_help(text)}.")
    number = _number(match["number"])
    operator = match["operator"] or ""
    basis = _basis_of(text, number)
    if not operator:
        return _at_least(text, basis, number)
    if operator == "~":
        reach = ABOUT * abs(number.value)
        return Expectation(
            text=text, basis=basis, low=number.value - reach, high=number.value + reach
        )
    if operator in ("==", "!="):
        value, other = number.value, operator == "!="
        return Expectation(text=text, basis=basis, low=value, high=value, other=other)
    strict = "=" not in operator
    if operator[0] == "<":
        return Expectation(text=text, basis=basis, high=number.value, strict=strict)
    return Expectation(text=text, basis=basis, low=number.value, strict=strict)


def complaint(text: str) -> str:
    """Says what is wrong with an expectation, as a sentence; empty where nothing is."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def _help(text: str) -> str:
    if match := _MINUSES.search(text):
        return f"its {match[0]!r} is not the minus sign of a keyboard: write '-'"
    return _HELP


def _at_least(text: str, basis: Basis, number: _Number) -> Expectation:
    if basis == "value":
        short = shorten(text)
        raise ValueError(
            f"{quote(text)} may be a value or a change: write '== {short}' or '+{short}'."
        )
    if not number.value:
        raise ValueError(f"{quote(text)} has no direction: write {UNCHANGED}, or a range.")
    if number.value < 0:
        return Expectation(text=text, basis=basis, high=number.value)
    return Expectation(text=text, basis=basis, low=number.value)


def _range(text: str, low: _Number, high: _Number) -> Expectation:
    kinds = {
        _basis_of(text, number)
        for number in (low, high)
        if number.value or number.signed or number.percent
    }
    if len(kinds) > 1:
        raise ValueError(f"{quote(text)}: both ends are values, or both are changes of one kind.")
    if low.value > high.value:
        raise ValueError(f"{quote(text)} ends before it begins: write the lower end first.")
    basis = kinds.pop() if kinds else "value"
    return Expectation(text=text, basis=basis, low=low.value, high=high.value)


def _number(text: str) -> _Number:
    percent = text.endswith("%")
    value = float(text.rstrip("% \t"))
    if not math.isfinite(value):
        raise ValueError(f"{quote(text)} is too large.")
    return _Number(value / 100 if percent else value, text[0] in "+-", percent)


def _basis_of(text: str, number: _Number) -> Basis:
    if number.percent and number.value and not number.signed:
        raise ValueError(f"{quote(text)}: a change has a sign, as in +5% or -5%.")
    if number.percent:
        return "change"
    return "difference" if number.signed else "value"
