"""A decoded entry: blocks of operations on register arrays, and where its lanes part and meet."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from warpsim import compiled
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.forms import ACCESSES, CompiledForm, Formed
from warpsim.machine.core.image import Image
from warpsim.machine.core.native_layout import (
    ALWAYS,
    BLOCK,
    DECIDES,
    GATE,
    IN_PART,
    INSTRUCTION,
    NEVER,
    NUMBERS,
    READS,
    SLOTS,
    USES,
    WRITES,
    CodeLayout,
)
from warpsim.machine.core.site import Site
from warpsim.machine.sync.gates import WaitGate
from warpsim.machine.wave.machine import Op
from warpsim.machine.wave.undefined import SlotUses


@dataclass(slots=True)
class Branch:
    """How a block ends: `guard` None is a plain jump."""

    targets: tuple[int, ...]
    following: int
    guard: int | None
    negated: bool
    index: int | None = None
    """Slot that picks the target."""


class Exit:
    """ret, exit."""


@dataclass(slots=True)
class BasicBlock:
    """Instructions that are executed together."""

    first: int
    last: int
    """The number after the last instruction's."""
    ops: list[Op] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Of the instructions that `ops` execute."""
    forms: list[CompiledForm | None] = field(default_factory=list)
    """The same compiled, where they have such a form."""
    loads: bool = False
    """Whether any of them may read what nobody wrote, in memory or from another lane."""
    gate: WaitGate | None = None
    sync: int | None = None
    """Slot of the member mask of a first instruction that needs its lanes together; -1: all."""
    anywhere: bool = False
    """Whether the lanes may stand at different instructions of that kind (__syncwarp)."""
    exclusive: bool = False
    """Whether lanes with different masks execute it one group after the other."""
    weight: int = 1
    """How much of a turn it takes: polls of memory are more than one."""
    end: Branch | Exit | None = None
    join: int | None = None
    """Where lanes that part at this block's end meet again."""
    joins: bool = False
    """Whether some block's lanes meet here."""
    stop: bool = False
    """Whether a warp may be stopped before it, for others to go on."""

    def add(self, number: int, op: Op) -> None:
        """Appends an instruction, in its compiled form too if it has one."""
        form = op.form if isinstance(op, Formed) else None
        self.ops.append(op.op if isinstance(op, Formed) else op)
        self.numbers.append(number)
        self.forms.append(form)

    def cut(self, stops: Collection[int]) -> list[BasicBlock]:
        """The block in pieces: each of these instructions begins one."""
        inside = range(self.first, self.last)
        if self.gate is not None or not any(number in stops for number in inside):
            return [self]
        ordered = [number for number in inside if number == self.first or number in stops]
        pieces = [
            self._piece(first, last, first in stops)
            for first, last in zip(ordered, [*ordered[1:], self.last], strict=True)
        ]
        pieces[0] = replace(
            pieces[0],
            sync=self.sync,
            anywhere=self.anywhere,
            exclusive=self.exclusive,
            joins=self.joins,
        )
        pieces[-1] = replace(pieces[-1], weight=self.weight, end=self.end, join=self.join)
        return pieces

    def _piece(self, first: int, last: int, stop: bool) -> BasicBlock:
        piece = BasicBlock(first, last, loads=self.loads, stop=stop)
        for number, op, form in zip(self.numbers, self.ops, self.forms, strict=True):
            if first <= number < last:
                piece.ops.append(op)
                piece.numbers.append(number)
                piece.forms.append(form)
        return piece


class CompiledBlock:
    """A block for compiled code."""

    def __init__(self, block: BasicBlock, uses: Sequence[SlotUses]) -> None:
        rows = [_row(*operation) for operation in zip(block.numbers, block.forms, strict=True)]
        self._instructions = np.array(rows, INSTRUCTION)
        self._numbers, self._uses = block.numbers, uses
        self._used: Array | None = None
        self._layout = CodeLayout(self._instructions.ctypes.data, None, len(rows))
        self.address = ctypes.addressof(self._layout)
        self.compiled: list[bool] = (self._instructions["operation"] >= 0).tolist()
        """Which instructions have a form; the others are Python's."""

    def follow(self) -> None:
        """From now on it can be executed with marked registers."""
        if self._used is None:
            known = (self._uses[number] if self._uses else None for number in self._numbers)
            self._used = np.array([_uses_row(uses) for uses in known], USES)
            self._layout.uses = self._used.ctypes.data


def _row(number: int, form: CompiledForm | None) -> tuple[object, ...]:
    """An instruction as compiled code has it."""
    form = form or CompiledForm("", ())
    slots = (*form.slots, *[-1] * (SLOTS - len(form.slots)))
    numbers = (*form.numbers, *[0] * (NUMBERS - len(form.numbers)))
    operation = compiled.operation(form.operation)
    first = operation, form.guard, form.negated, number, form.uniform, form.signs
    return *first, slots, numbers, form.offset


def _block_row(block: BasicBlock, end: int) -> tuple[int, ...]:
    """A block as compiled code has it, but for its code; end: the number after the program's last
    instruction."""
    held = NEVER
    if block.gate is not None or block.stop or block.exclusive:
        held = ALWAYS
    elif block.sync is not None:
        held = IN_PART
    guard, negated, target, following = -1, False, -1, -1
    if block.end is None:
        target = block.last
    elif isinstance(block.end, Branch) and block.end.index is None:
        (target,) = block.end.targets
        target = end if target == -1 else target
        if block.end.guard is not None:
            guard, negated, following = block.end.guard, block.end.negated, block.end.following
    return 0, block.last, block.weight, held, block.joins, guard, negated, target, following


# What compiled/marks.cpp knows of how marks are handed on, in the order of kx::Rule.
_RULES = (
    "unknown",
    "python",
    "copies",
    "selects",
    "computes",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "bfe",
    "prmt",
)


def _rule(uses: SlotUses) -> str:
    if (
        uses.updates
        or any(uses.multiplies)
        or uses.lanes
        or uses.members is not None
        or uses.absorbed
    ):
        return "python"
    if uses.selects:
        return "selects"
    return "copies" if uses.copies else {"": "computes", "not": "xor"}.get(uses.stem, uses.stem)


def _uses_row(uses: SlotUses | None) -> tuple[object, ...]:
    """What an instruction does with registers, as compiled code has it."""
    slots = ((), (), ()) if uses is None else (uses.reads, uses.decides, uses.writes)
    lists = list(zip(slots, (READS, DECIDES, WRITES), strict=True))
    followed = uses is not None and all(len(item) <= room for item, room in lists)
    rule = _RULES.index(_rule(uses)) if uses is not None and followed else 0
    return rule, *([*item, *[-1] * (room - len(item))][:room] for item, room in lists)


# Blocks that a batch may run before others get their turn: most batches stop at a barrier long
# before. A poll of memory counts as many, so that who polls does not keep off whom it waits for.
QUANTUM = 4000
POLL = QUANTUM // 8


def in_loops(blocks: Mapping[int, BasicBlock]) -> Iterator[int]:
    """Instructions that a thread may execute more than once."""
    following = {first: tuple(leads_to(block)) for first, block in blocks.items()}
    for first, block in blocks.items():
        seen, left = set[int](), list(following[first])
        while left and first not in seen:
            at = left.pop()
            if at not in seen and at in following:
                seen.add(at)
                left += following[at]
        if first in seen:
            yield from range(block.first, block.last)


def leads_to(block: BasicBlock) -> Iterator[int]:
    """The first instructions of those that may come after it."""
    if block.end is None:
        yield block.last
    elif isinstance(block.end, Branch):
        yield from block.end.targets
        if block.end.guard is not None or block.end.index is not None:
            yield block.end.following


class DecodedProgram:
    """One entry. A pc is the number of an instruction; blocks go by their first one."""

    def __init__(
        self,
        image: Image,
        sites: list[Site],
        blocks: dict[int, BasicBlock],
        uses: list[SlotUses] | None = None,
        stops: frozenset[int] = frozenset(),
        hazards: Sequence[tuple[int, str, str]] = (),
        bounds: Sequence[tuple[int, bool]] = (),
    ) -> None:
        """stops: instructions by which threads meet in memory: strong accesses, atomics, fences.
        hazards: (instruction, name, sentence) of what is wrong whatever happens.
        bounds: instructions with a guard by which threads stay inside of a problem, and whether the
            lanes for which it holds leave there."""
        self.image = image
        self.sites = sites
        self.blocks = blocks
        self.uses = uses or []
        """What each instruction does with registers; none: not known."""
        self.asks_who_is_active = any(site.opcode.startswith("activemask") for site in sites)
        """By __activemask(). SASS says itself where lanes meet."""
        self.hazards = hazards
        self.bounds = bounds
        self._stops = stops
        self._stopping: DecodedProgram | None = None
        self._code: dict[int, CompiledBlock] = {}

    def stopping(self) -> DecodedProgram:
        """The same with a block for each instruction before which warps may be stopped."""
        if not self._stops:
            return self
        if self._stopping is None:
            pieces = [piece for block in self.blocks.values() for piece in block.cut(self._stops)]
            blocks = {piece.first: piece for piece in pieces}
            self._stopping = DecodedProgram(
                self.image, self.sites, blocks, self.uses, hazards=self.hazards, bounds=self.bounds
            )
        return self._stopping

    @functools.cached_property
    def keeps_apart(self) -> bool:
        """Whether threads of several CTAs meet nowhere in memory: no atomics, no fences and no
        strong accesses but to shared memory, no polls and no heap."""
        opcodes = (self.sites[number].opcode for number in self._stops)
        image = self.image
        return not (image.polls or image.heap_bytes or image.cancels_launches) and all(
            ".shared" in opcode or opcode.startswith(("ATOMS", "LDS", "STS")) for opcode in opcodes
        )

    @functools.cached_property
    def owners(self) -> Array:
        """The first instruction of each instruction's block; of those in none, their number."""
        owners = np.full(len(self.sites), len(self.sites))
        for first, block in self.blocks.items():
            owners[first : block.last] = first
        return owners

    @functools.cached_property
    def memories(self) -> list[int]:
        """Those that compiled code accesses, as forms.MEMORIES numbers them."""
        forms = [form for block in self.blocks.values() for form in block.forms if form]
        return sorted({form.numbers[0] for form in forms if form.operation in ACCESSES})

    @functools.cached_property
    def table(self) -> Array:
        """The blocks for compiled code, by their first instruction, as far as code() has made
        them."""
        end = len(self.sites)
        table = np.zeros(end + 1, BLOCK)
        table["held"] = ALWAYS
        for first, block in self.blocks.items():
            table[first] = _block_row(block, end)
            if first in self.gates:
                self._code[first] = self.gates[first]
                table["held"][first], table["code"][first] = GATE, self.gates[first].address
        return table

    @functools.cached_property
    def gates(self) -> dict[int, CompiledBlock]:
        """Those that compiled code may let warps through, by their blocks' first instruction."""
        known = {}
        for first, block in self.blocks.items():
            if block.gate is not None and block.sync is None and not block.stop:
                form = block.gate.form(self.image.slots)
                if form is not None:
                    gate = BasicBlock(first, block.last, numbers=[first], forms=[form])
                    known[first] = CompiledBlock(gate, ())
        return known

    def code(self, first: int) -> CompiledBlock:
        """The block that begins there for compiled code, which has to be loaded."""
        compiled_block = self._code.get(first)
        if compiled_block is None:
            compiled_block = self._code[first] = CompiledBlock(self.blocks[first], self.uses)
            self.table["code"][first] = compiled_block.address
        return compiled_block
