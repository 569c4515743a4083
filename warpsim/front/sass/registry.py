"""The table that decoding looks instructions up in.

A pattern spells opcodes with their modifiers: `{:.S32|.U32}` is one of several, `{:|.FTZ}` may be
empty. Modifiers without an effect on results stand in the patterns too: an opcode that fits none is
refused. A builder receives the decoder, which stands at the instruction, and returns what is to be
executed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from warpsim.front.sass.decoder import SassDecoder
from warpsim.machine.schedule.program import Exit
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.wave.machine import Op


@dataclass(frozen=True)
class BranchPoint:
    """A branch: `before` computes the predicate or the target that it goes by."""

    targets: tuple[int, ...]
    """Instructions, by number; of an indirect branch, all that it may lead to."""
    guard: int | None = None
    negated: bool = False
    index: int | None = None
    """Slot that picks the target."""
    before: Op | None = None


@dataclass(frozen=True)
class Reconvergence:
    """Waits until the lanes of a mask have come."""

    members: int
    """Slot; -1 for all lanes."""
    anywhere: bool
    """Whether they may come to different instructions of the kind."""
    exclusive: bool = False
    """Whether lanes with different masks go on one group after the other."""


Result: TypeAlias = Op | WaitGate | BranchPoint | Reconvergence | Exit
Builder: TypeAlias = Callable[[SassDecoder], Result]
B = TypeVar("B", bound=Builder)

_GROUP = re.compile(r"\{:([^}]*)\}")


class SassPattern(NamedTuple):
    """A line of the table."""

    area: str
    text: str
    modelled: str
    regex: re.Pattern[str]
    builder: Builder


PATTERNS: list[SassPattern] = []


def _regex(pattern: str) -> re.Pattern[str]:
    pieces, end = [], 0
    for match in _GROUP.finditer(pattern):
        choices = "|".join(re.escape(choice) for choice in match[1].split("|"))
        pieces += [re.escape(pattern[end : match.start()]), f"(?:{choices})"]
        end = match.end()
    return re.compile("".join(pieces) + re.escape(pattern[end:]))


def covers(*patterns: str) -> Callable[[B], B]:
    """Registers a builder for every opcode of the patterns."""

    def register(function: B) -> B:
        area, modelled = function.__module__.rsplit(".", 1)[-1], (function.__doc__ or "").strip()
        for text in patterns:
            PATTERNS.append(SassPattern(area, text, modelled, _regex(text), function))
        return function

    return register


@functools.lru_cache(maxsize=4096)
def find(opcode: str) -> Builder | None:
    """The builder of an opcode; None if the emulator does not cover it."""
    for pattern in PATTERNS:
        if pattern.regex.fullmatch(opcode):
            return pattern.builder
    return None
