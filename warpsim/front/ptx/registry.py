"""The tables that decoding looks instructions up in.

`alu` is for instructions that are a pure function of their operands. A pattern spells the opcodes:
`{t:u32|s32}` is one of several, `{ftz:|.ftz}` may be empty; what was chosen goes to the function as
a keyword of that name, if it has one. The first pattern that fits an opcode counts. `builder` is
for all others: the function receives the decoder, which stands at the instruction, and returns what
is to be executed.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.machine.core.arrays import Array
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.wave.machine import Op

_GROUP = re.compile(r"\{(\w+):([^}]*)\}")


Builder: TypeAlias = Callable[[PtxDecoder], Op | WaitGate]
B = TypeVar("B", bound=Builder)
F = TypeVar("F", bound=Callable[..., Array])


class Alu(NamedTuple):
    """A pure instruction: its function and the types of its operands, destination first."""

    function: Callable[..., Array]
    kinds: tuple[str, ...]
    keywords: dict[str, str]
    ufunc: np.ufunc | None = None


class Effect(NamedTuple):
    """An instruction with effects: what builds it."""

    function: Builder
    sync: bool
    """Needs all lanes that take part at once: shfl, ldmatrix, mma, ..."""
    gate: bool
    """A warp may have to wait at it: bar.sync, mbarrier.try_wait, ..."""


class PtxPattern(NamedTuple):
    """A line of the table of covered instructions."""

    area: str
    text: str
    modelled: str
    make: Callable[[dict[str, str]], Alu | Effect]

    def groups(self, opcode: str) -> dict[str, str] | None:
        """What an opcode chooses in each group; None if it does not fit."""
        if not opcode.startswith(self.text.partition("{")[0]):
            return None  # before the pattern has to be split: most are never asked for more
        return _chosen(_parts(self.text), opcode)


PATTERNS: list[PtxPattern] = []


class _Group(NamedTuple):
    """Text that every opcode has, and the group after it."""

    before: str
    name: str
    choices: tuple[str, ...]


@functools.cache
def _parts(pattern: str) -> tuple[_Group, ...]:
    """The groups of a pattern; the last one stands for its end."""
    groups = []
    end = 0
    for match in _GROUP.finditer(pattern):
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


def _area(function: Callable[..., Any]) -> str:
    return function.__module__.rsplit(".", 1)[-1]


def alu(pattern: str, kinds: str, *, ufunc: np.ufunc | None = None) -> Callable[[F], F]:
    """Registers a pure function; `kinds` are types or names of groups, destination first.

    `ufunc`: a NumPy ufunc that does the same on unsigned operands, straight to the register.
    """

    def register(function: F) -> F:
        wanted = inspect.signature(function).parameters

        def make(groups: dict[str, str]) -> Alu:
            types = tuple(groups.get(kind, kind).lstrip(".") for kind in kinds.split())
            keywords = {name: text for name, text in groups.items() if name in wanted}
            return Alu(function, types, keywords, ufunc)

        modelled = (function.__doc__ or "").strip()
        PATTERNS.append(PtxPattern(_area(function), pattern, modelled, make))
        return function

    return register


def builder(pattern: str, *, sync: bool = False, gate: bool = False) -> Callable[[B], B]:
    """Registers a builder for every opcode of `pattern`."""

    def register(function: B) -> B:
        entry = Effect(function, sync, gate)
        modelled = (function.__doc__ or "").strip()
        PATTERNS.append(PtxPattern(_area(function), pattern, modelled, lambda groups: entry))
        return function

    return register


@functools.lru_cache(maxsize=4096)
def find(opcode: str) -> Alu | Effect | None:
    """The table entry of an opcode; None if the emulator does not cover it."""
    for pattern in PATTERNS:
        groups = pattern.groups(opcode)
        if groups is not None:
            return pattern.make(groups)
    return None
