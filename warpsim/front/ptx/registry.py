"""What PTX instructions stand for: pure functions of their operands, or builders of what they do.

`alu` is for instructions that are a pure function of their operands: what the named groups of its
pattern choose goes to the function as keywords of these names, if it has them. `builder` is for all
others: the function receives the decoder, which stands at the instruction, and returns what is to
be executed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.table import Table
from warpsim.machine.core.arrays import Array
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.wave.machine import Op

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


TABLE: Table[Alu | Effect] = Table()
find = TABLE.find
"""The entry of an opcode; None if the emulator does not cover it."""


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

        TABLE.add(pattern, function, make)
        return function

    return register


def builder(pattern: str, *, sync: bool = False, gate: bool = False) -> Callable[[B], B]:
    """Registers a builder for every opcode of `pattern`."""

    def register(function: B) -> B:
        entry = Effect(function, sync, gate)
        TABLE.add(pattern, function, lambda groups: entry)
        return function

    return register
