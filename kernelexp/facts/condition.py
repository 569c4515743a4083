"""Conditions of a gate on the instructions of a variant, as they are written: `LDG.128 >= 1`.

A pattern of SASS instructions, then an expectation of their number (expectation.py):

    STL == 0                     no stores to local memory
    LDG.128 >= 1                 an opcode with some of its modifiers, in their order: LDG.E.128
    LDG.32 == 0                  32 is the width that SASS leaves out
    *MMA >= 1, LDG.*.CONSTANT    `*` for any letters, of an opcode or of a modifier
    BAR.SYNC in loops <= 2       only those that are in a loop
    SHFL -50%, FFMA unchanged    compared with a baseline
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Mapping

import msgspec

from kernelexp.facts import accesses
from kernelexp.facts.expectation import Expectation
from kernelexp.facts.expectation import parse as parse_expectation
from kernelexp.model.text import quote
from warpsim.tables import opcodes

_CONDITION = re.compile(
    r"\s*(?P<pattern>[\w*]+(?:\.[\w*:]+)*?)(?P<loops>\s+in\s+loops)?\s*"
    r"(?P<expectation>(?:[-+~<>=!]|(?<=\s)\d|(?<=\s)unchanged\s*$).*)",
    re.ASCII | re.DOTALL,
)
_HELP = (
    "write a SASS instruction and what is expected of its number, as in LDG.128 >= 1, STL == 0 or "
    "BAR.SYNC in loops <= 2"
)


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of how many instructions there are of a kind."""

    text: str
    """As it is written."""
    pattern: str
    in_loops: bool
    expectation: Expectation


def parse(text: str) -> Condition:
    """ValueError with a sentence where `text` is none; see this module for what it may be."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"{quote(text)} is not a condition on instructions: {_HELP}.")
    pattern = match["pattern"]
    _require_known(text, pattern.split(".")[0])
    return Condition(
        text=text,
        pattern=pattern,
        in_loops=bool(match["loops"]),
        expectation=parse_expectation(match["expectation"]),
    )


def _require_known(text: str, opcode: str) -> None:
    """A slip of the pen would be met by every variant: `STLL == 0`."""
    if opcode != opcode.upper():
        raise ValueError(
            f"{quote(text)}: conditions are on SASS, whose opcodes are in capitals; kernelexp "
            "inspect lists those of a variant."
        )
    # The uniform datapath's opcodes are the others' with a U before them.
    names = [*opcodes.known(), *(f"U{item}" for item in opcodes.known())]
    if not fnmatch.filter(names, opcode):
        close = difflib.get_close_matches(opcode, opcodes.known(), n=1)
        hint = f"did you mean {close[0]}?" if close else "kernelexp inspect lists a variant's."
        raise ValueError(f"{quote(text)}: no SASS instruction is called {opcode}; {hint}")


def count(pattern: str, counts: Mapping[str, int]) -> int:
    """The instructions that a pattern names; `counts` has their numbers, by mnemonic."""
    return sum(number for mnemonic, number in counts.items() if matches(pattern, mnemonic))


def matches(pattern: str, mnemonic: str) -> bool:
    """Whether an instruction has the pattern's opcode, and its modifiers in this order."""
    opcode, *wanted = pattern.upper().split(".")
    own, *modifiers = mnemonic.upper().split(".")
    if not fnmatch.fnmatchcase(own, opcode):
        return False
    access = accesses.of_sass(mnemonic)
    if access and access.bits == 32 and "32" in wanted and not access.kind.startswith("matrix"):
        wanted = [item for item in wanted if item != "32"]
    rest = iter(modifiers)
    return all(any(fnmatch.fnmatchcase(has, item) for has in rest) for item in wanted)
