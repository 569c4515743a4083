"""The compiled form of an instruction: an operation of compiled/*.cpp, and what it is done with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

MEMORIES = {"shared": 0, "global": 1, "generic": 1, "local": 2}
"""By space, what a form calls a memory. A generic address in another one is out of bounds there,
and so left to Python."""

ACCESSES = frozenset({"ld", "st", "ldmatrix", "stmatrix"})
"""Operations that access memory."""


class CompiledForm(NamedTuple):
    """One instruction."""

    operation: str
    """A name that PTX has for it, or that a table of compiled/*.cpp does; of no effect where there
    is no such operation."""
    slots: tuple[int, ...]
    """Destinations first; -1: none."""
    numbers: tuple[int, ...] = ()
    """What the operation's own comment says."""
    offset: int = 0
    """What is added to an address."""
    guard: int = -1
    """Slot; -1: none."""
    negated: bool = False


class Formed:
    """An operation on register arrays that has a compiled form, which does the same."""

    __slots__ = ("form", "op")

    def __init__(self, op: Callable[..., None], form: CompiledForm) -> None:
        self.op = op
        self.form = form

    def __call__(self, *arguments: Any) -> None:
        self.op(*arguments)
