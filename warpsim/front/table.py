"""The table of an instruction set: opcodes, as patterns, and what each of them stands for.

A pattern spells an opcode with its modifiers. `{t:u32|s32}` and `{:.S32|.U32}` are one of several,
`{ftz:|.ftz}` may be empty. The first pattern that fits an opcode counts. Modifiers without an
effect on results are in the patterns too: an opcode that fits none is refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

E = TypeVar("E")

GROUP = re.compile(r"\{(\w*):([^}]*)\}")


class _Group(NamedTuple):
    """Text that every opcode has, and the group after it."""

    before: str
    name: str
    choices: tuple[str, ...]


class Row(NamedTuple, Generic[E]):
    """A pattern with what its opcodes stand for."""

    area: str
    """The module that has it."""
    function: str
    text: str
    modelled: str
    """What the documentation says of it: the function's docstring."""
    make: Callable[[dict[str, str]], E]
    """From what the opcode chooses in each named group."""

    def groups(self, opcode: str) -> dict[str, str] | None:
        """What an opcode chooses in each group; None if it does not fit."""
        if not opcode.startswith(self.text.partition("{")[0]):
            return None  # before the pattern has to be split: most are never asked for more
        return _chosen(_parts(self.text), opcode)


class Table(Generic[E]):
    """The rows, in the order in which the modules of the instruction set are imported."""

    def __init__(self) -> None:
        self.rows: list[Row[E]] = []
        self._entries: dict[str, E | None] = {}

    def add(
        self, text: str, function: Callable[..., Any], make: Callable[[dict[str, str]], E]
    ) -> None:
        """A row for what `function` does, in the area of its module."""
        area = function.__module__.rsplit(".", 1)[-1]
        modelled = (function.__doc__ or "").strip()
        self.rows.append(Row(area, function.__name__, text, modelled, make))

    def find(self, opcode: str) -> E | None:
        """What an opcode stands for; None if the emulator does not cover it."""
        if opcode not in self._entries:
            self._entries[opcode] = self._look_up(opcode)
        return self._entries[opcode]

    def _look_up(self, opcode: str) -> E | None:
        for row in self.rows:
            groups = row.groups(opcode)
            if groups is not None:
                return row.make(groups)
        return None


@functools.cache
def _parts(pattern: str) -> tuple[_Group, ...]:
    """The groups of a pattern; the last one stands for its end."""
    groups = []
    end = 0
    for match in GROUP.finditer(pattern):
        groups.append(_Group(pattern[end : match.start()], match[1], tuple(match[2].split("|"))))
        end = match.end()
    return (*groups, _Group(pattern[end:], "", ()))


def _chosen(groups: Sequence[_Group], opcode: str) -> dict[str, str] | None:
    """The first choices with which the groups spell an opcode: a regular expression finds the same,
    but takes milliseconds to compile, in each process."""
    (before, name, choices), *rest = groups
    if not rest:
        return {} if opcode == before else None
    if not opcode.startswith(before):
        return None
    after = opcode[len(before) :]
    for choice in choices:
        if after.startswith(choice):
            chosen = _chosen(rest, after[len(choice) :])
            if chosen is not None:
                return {name: choice, **chosen}
    return None
