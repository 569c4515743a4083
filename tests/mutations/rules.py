"""The rules that make mutants: what to change of which instruction.

A rule looks at one instruction of a parsed entry and names the changes that it would make. Each is
one mistake that somebody could have made: a barrier forgotten, an arrival before the last read, a
parity the wrong way round, a field of a descriptor that is off by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mutations import edits
from mutations.edits import Edit
from warpsim.front.ptx.syntax import Function, Instruction

if TYPE_CHECKING:
    import warpsim as emulator
    from mutations.case import Loaded


class Change(NamedTuple):
    """A change of one instruction: how it is named, and how it is made."""

    name: str
    edit: Edit


class Site(NamedTuple):
    """An instruction in its entry."""

    function: Function
    at: int

    @property
    def instruction(self) -> Instruction:
        return self.function.instructions[self.at]


class Rule(NamedTuple):
    kind: str
    """What is done: drop, move, weaken, swap, off by one, field."""
    pattern: re.Pattern[str]
    """Of the opcodes that it is about."""
    changes: Callable[[Site], Iterator[Change]]


RULES: list[Rule] = []


def rule(kind: str, pattern: str) -> Callable[[Callable[[Site], Iterator[Change]]], object]:
    def add(changes: Callable[[Site], Iterator[Change]]) -> object:
        RULES.append(Rule(kind, re.compile(pattern), changes))
        return changes

    return add


def replaced_in_opcode(site: Site, pairs: tuple[tuple[str, str, str], ...]) -> Iterator[Change]:
    for name, old, new in pairs:
        opcode = re.sub(old, new, site.instruction.opcode, count=1)
        if opcode != site.instruction.opcode:
            yield Change(name, edits.renamed(site.at, site.instruction, opcode))


_STEM = re.compile(
    r"bar\.warp\.sync|bar(?:rier)?\.cluster\.\w+|bar\.\w+|barrier\.\w+|mbarrier\.\w+(?:\.expect_tx)?|"
    r"cp\.async\.bulk\.(?:tensor\.\dd\.(?:shared|global)|commit_group|wait_group(?:\.read)?)|"
    r"cp\.reduce|cp\.async\.bulk|cp\.async\.\w+|wgmma\.\w+|tcgen05\.\w+(?:::\w+)?|fence\.proxy\.async|"
    r"fence\.\w+|membar|\w+matrix|setmaxnreg\.\w+|\w+\.(?:volatile|acquire|release|relaxed|async)|"
    r"(?:ld|st|atom|red)\.\w+|\w+"
)


def stem(opcode: str) -> str:
    """The part of an opcode that says what it is."""
    result = _STEM.match(opcode)
    assert result, opcode
    return result[0]


class Mutant(NamedTuple):
    """A change of one instruction of a kernel."""

    key: str
    """kernel | instruction and which of its kind | change."""
    kind: str
    at: int
    instruction: Instruction
    change: Change

    def program(self, loaded: Loaded) -> emulator.Module:
        return loaded.program(self.change.edit(loaded.function))


def mutants(
    kernel: str, function: Function, per_kind: int, executed: Container[tuple[int, str]]
) -> list[Mutant]:
    """Mutants of the instructions of an entry that were `executed`, by their line and opcode; of
    each kind of instruction and change `per_kind` at most, spread over the entry."""
    ordinals: dict[str, int] = {}
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for at, ins in enumerate(function.instructions):
        name = stem(ins.opcode)
        number = ordinals[name] = ordinals.get(name, 0) + 1
        if (ins.line, ins.opcode) not in executed:
            continue
        for item in RULES:
            if item.pattern.match(ins.opcode):
                for change in item.changes(Site(function, at)):
                    key = f"{kernel} | {name} {number} | {change.name}"
                    result = Mutant(key, item.kind, at, ins, change)
                    groups.setdefault((name, change.name), []).append(result)
    return [
        chosen
        for group in groups.values()
        for chosen in _spread(group, 1 if group[0].kind == "field" else per_kind)
    ]


def _spread(group: list[Mutant], count: int) -> list[Mutant]:
    """The first, the last and those evenly between."""
    if len(group) <= count:
        return group
    if count == 1:
        return [group[len(group) // 2]]
    return [group[round(i * (len(group) - 1) / (count - 1))] for i in range(count)]
