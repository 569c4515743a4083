"""The compiled form of an instruction: an operation of compiled/*.cpp, and what it is done with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

MEMORIES = {"shared": 0, "global": 1, "generic": 1, "local": 2}
"""By space, what a form calls a memory. A generic address in another one is out of bounds there,
and so left to Python."""

ACCESSES = frozenset({"ld", "st", "ldmatrix", "stmatrix"})
"""Operations that access memory."""


OF_SASS = frozenset(
    "add3.u32 add3.cc.u32 lea.u32 mad.cc.u32 mad.wide.cc.u64 shf.b64 plop3.pred first.b32 vote.b32 "
    "nothing hadd2.f32".split()
)
"""Operations that no instruction of PTX has."""

SYNCHRONISES = frozenset(
    "mbarrier.arrive mbarrier.wait bar.warp.sync fence.proxy.async fence.mbarrier_init".split()
)
"""Operations on the clocks and mbarriers of a wave."""

NEGATED, INVERTED, MAGNITUDE, FLIPPED = 1, 2, 4, 8
"""What is done to a source before: kx::Sign."""
SIGN_BITS = 4
"""Of each source."""


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
    uniform: bool = False
    """Whether it is executed for all lanes, whichever are active."""
    signs: int = 0
    """What is done to the sources before, SIGN_BITS each."""


class Formed:
    """An operation on register arrays that has a compiled form, which does the same."""

    __slots__ = ("form", "op")

    def __init__(self, op: Callable[..., None], form: CompiledForm) -> None:
        self.op = op
        self.form = form

    def __call__(self, *arguments: Any) -> None:
        self.op(*arguments)
