"""Instructions to closures over register arrays: done once, when a kernel is loaded."""

# NumPy's operators on arrays of any type are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import numpy as np

from kernelexp.emulator.cfg import flow, is_exit
from kernelexp.emulator.isa.registry import Alu, Built, Op, find, refuse
from kernelexp.emulator.ptx.inline import inlined
from kernelexp.emulator.ptx.syntax import (
    Function,
    Instruction,
    Module,
    Operand,
    Symbol,
    Vector,
)
from kernelexp.emulator.slots import Array, Slots, width_of

copyto = np.copyto

SKIP = "bra.around"
"""The branch around a guarded instruction: not an instruction of the kernel, so not counted."""


class Gate(Protocol):
    """An instruction at which a warp may have to wait."""

    instruction: Instruction

    def enter(self, machine: Any, fragment: Any) -> bool:
        """What happens on arrival; whether the fragment may go on at once."""

    def ready(self, machine: Any, fragment: Any) -> bool: ...

    def leave(self, machine: Any, fragment: Any) -> None: ...

    def describe(self, machine: Any, fragment: Any) -> str:
        """For the table of a hang: what is waited for."""


class Branch:
    """How a block ends: `guard` None is a plain jump."""

    __slots__ = ("following", "guard", "index", "negated", "targets")

    def __init__(
        self, targets: tuple[int, ...], following: int, guard: int | None, negated: bool
    ) -> None:
        self.targets = targets
        self.following = following
        self.guard = guard
        self.negated = negated
        self.index: int | None = None


class Exit:
    """ret, exit."""


class Block:
    """Instructions that are executed together."""

    __slots__ = ("end", "first", "gate", "join", "joins", "last", "numbers", "ops", "sync")

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.ops: list[Op] = []
        self.numbers = range(first, last)
        self.gate: Gate | None = None
        self.sync: int | None = None
        """Slot of the member mask of a first instruction that needs its lanes together; -1: all."""
        self.end: Branch | Exit | None = None
        self.join: int | None = None
        """Where lanes that part at this block's end meet again."""
        self.joins = False
        """Whether some block's lanes meet here."""


class Program:
    """One entry, decoded."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.slots = Slots(function)
        self.blocks: dict[int, Block] = {}
        self.shared_unit = 4
        """Bytes of the smallest shared-memory access: what the race check distinguishes."""


class Decoder:
    """What a builder may ask for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.slots = program.slots
        self.module = program.module
        self.function = program.function
        self.number = 0
        """Index of the instruction being decoded."""

    def source(self, operand: Operand, kind: str, ins: Instruction) -> int:
        return self.slots.source(operand, kind, ins)

    def destination(self, operand: Operand, ins: Instruction) -> int:
        return self.slots.destination(operand, ins)

    def sources(self, operand: Operand, kind: str, ins: Instruction, count: int) -> list[int]:
        """Slots of a vector operand's elements, or of a single operand."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if len(items) != count:
            raise refuse(ins, f"has {len(items)} elements where {count} are expected")
        return [self.source(item, kind, ins) for item in items]

    def destinations(self, operand: Operand, ins: Instruction, count: int) -> list[int]:
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if len(items) != count:
            raise refuse(ins, f"has {len(items)} elements where {count} are expected")
        return [self.destination(item, ins) for item in items]

    def width(self, slot: int) -> int:
        """Bits of a destination slot."""
        key = self.slots.keys[slot]
        return 64 if key[0] == "sink" else int(key[2])

    def constant(self, operand: Operand, ins: Instruction) -> int:
        """The value of an operand that has to be a literal."""
        value = getattr(operand, "value", None)
        if not isinstance(value, int):
            raise refuse(ins, "needs a literal there")
        return value


def decode(module: Module, name: str) -> Program:
    """The program of entry `name`; UnsupportedInstruction for the first that is not covered."""
    function = unguarded(inlined(module, name))
    program = Program(module, function)
    decoder = Decoder(program)
    made: list[Any] = []
    cuts = set()
    for number, ins in enumerate(function.instructions):
        decoder.number = number
        made.append(None if _controls(ins) else _build(decoder, ins))
        entry = find(ins.opcode)
        if isinstance(entry, Built) and entry.gate:
            cuts |= {number, number + 1}
        elif isinstance(entry, Built) and entry.sync:
            cuts.add(number)
    _blocks(program, decoder, made, sorted(cut for cut in cuts if cut < len(made)))
    return program


def unguarded(function: Function) -> Function:
    """The function with a branch around each guarded instruction at which lanes wait."""
    body: list[Instruction] = []
    moved: list[int] = []
    labels: dict[str, int] = {}
    for ins in function.instructions:
        moved.append(len(body))
        entry = find(ins.opcode)
        if ins.guard is not None and isinstance(entry, Built) and (entry.gate or entry.sync):
            label = f"@skip{len(body)}"
            body.append(
                msgspec.structs.replace(
                    ins,
                    opcode=SKIP,
                    operands=(Symbol(label),),
                    guard_negated=not ins.guard_negated,
                )
            )
            body.append(msgspec.structs.replace(ins, guard=None, guard_negated=False))
            labels[label] = len(body)
        else:
            body.append(ins)
    moved.append(len(body))
    labels |= {name: moved[at] for name, at in function.labels.items()}
    return msgspec.structs.replace(function, instructions=body, labels=labels)


def _controls(ins: Instruction) -> bool:
    return ins.opcode.startswith(("bra", "brx")) or (is_exit(ins) and ins.opcode != "trap")


def _build(decoder: Decoder, ins: Instruction) -> Any:
    entry = find(ins.opcode)
    if entry is None:
        raise refuse(ins)
    item = _pure(decoder, ins, entry) if isinstance(entry, Alu) else entry.function(ins, decoder)
    return item if ins.guard is None else _guard(decoder, ins, item)


def _guard(decoder: Decoder, ins: Instruction, op: Op) -> Op:
    slot, negated = decoder.source(ins.guard, "pred", ins), ins.guard_negated
    number = decoder.number

    def guarded(R: list[Array], m: Any, warps: Any) -> None:
        on = ~R[slot] if negated else R[slot]
        if m is not True:
            on = on & m
        count = int(np.count_nonzero(on))
        if count == on.size:
            warps.note(number, warps.count, count)
            op(R, True, warps)
        elif count:
            warps.note(number, int(np.count_nonzero(on.any(axis=1))), count)
            op(R, on, warps)
        else:
            warps.note(number, 0, 0)

    return guarded


def _pure(decoder: Decoder, ins: Instruction, entry: Alu) -> Op:
    kinds = entry.kinds
    operands = ins.operands
    if len(operands) != len(kinds):
        raise refuse(ins, f"has {len(operands)} operands where {len(kinds)} are expected")
    sources = [decoder.source(o, k, ins) for o, k in zip(operands[1:], kinds[1:], strict=True)]
    target = decoder.destination(operands[0], ins)
    function: Callable[..., Array] = entry.function
    if entry.keywords:
        plain, keywords = function, entry.keywords

        def function(*args: Array) -> Array:
            return plain(*args, **keywords)

    width = decoder.width(target)
    if operands[0] is not None and width != width_of(kinds[0]):
        function = _widened(function, kinds[0], width)
    return _ARITIES[len(sources)](function, target, sources, entry.ufunc)


def _widened(function: Callable[..., Array], kind: str, width: int) -> Callable[..., Array]:
    """A destination register wider than the type: sign- or zero-extended, as cvt is."""
    narrow = np.dtype(f"i{width_of(kind) // 8}") if kind[0] == "s" else None
    wide = np.dtype(f"u{width // 8}")

    def extended(*args: Array) -> Array:
        value = function(*args)
        if narrow is not None:
            value = value.astype(f"u{narrow.itemsize}").view(narrow)
        return value.astype(wide)

    return extended


def _unary(function: Any, d: int, s: list[int], ufunc: Any) -> Op:
    (a,) = s

    def op(R: list[Array], m: Any, warps: Any) -> None:
        copyto(R[d], function(R[a]), where=m)

    return op


def _binary(function: Any, d: int, s: list[int], ufunc: Any) -> Op:
    a, b = s

    def op(R: list[Array], m: Any, warps: Any) -> None:
        copyto(R[d], function(R[a], R[b]), where=m)

    def direct(R: list[Array], m: Any, warps: Any) -> None:
        if m is True:
            ufunc(R[a], R[b], R[d])
        else:
            copyto(R[d], ufunc(R[a], R[b]), where=m)

    return op if ufunc is None else direct


def _ternary(function: Any, d: int, s: list[int], ufunc: Any) -> Op:
    a, b, c = s

    def op(R: list[Array], m: Any, warps: Any) -> None:
        copyto(R[d], function(R[a], R[b], R[c]), where=m)

    return op


def _general(function: Any, d: int, s: list[int], ufunc: Any) -> Op:
    def op(R: list[Array], m: Any, warps: Any) -> None:
        copyto(R[d], function(*[R[i] for i in s]), where=m)

    return op


_ARITIES: dict[int, Any] = {1: _unary, 2: _binary, 3: _ternary, 4: _general, 5: _general}


def _blocks(program: Program, decoder: Decoder, made: list[Any], cuts: list[int]) -> None:
    function = program.function
    graph = flow(function, cuts)
    joins = {join for join in graph.join.values() if join is not None}
    for position, first in enumerate(graph.starts):
        last = graph.starts[position + 1] if position + 1 < len(graph.starts) else len(made)
        block = Block(first, last)
        block.join = graph.join[first]
        block.joins = first in joins
        _fill(block, decoder, made)
        program.blocks[first] = block


def _fill(block: Block, decoder: Decoder, made: list[Any]) -> None:
    body = decoder.function.instructions
    first = body[block.first]
    entry = find(first.opcode)
    if isinstance(entry, Built) and entry.sync:
        block.sync = _members(decoder, first)
    for number in range(block.first, block.last):
        ins, item = body[number], made[number]
        if hasattr(item, "enter"):
            block.gate = item
        elif item is not None:
            block.ops.append(item)
        else:
            block.end = _end(decoder, ins, number)


def _members(decoder: Decoder, ins: Instruction) -> int:
    """Slot of the member mask, the last operand of every such instruction that has one."""
    if ".aligned" in ins.opcode:
        return -1
    return decoder.source(ins.operands[-1], "b32", ins)


def _end(decoder: Decoder, ins: Instruction, number: int) -> Branch | Exit:
    guard = None if ins.guard is None else decoder.source(ins.guard, "pred", ins)
    if is_exit(ins):
        if guard is None:
            return Exit()
        return Branch((-1,), number + 1, guard, ins.guard_negated)
    labels = decoder.function.labels
    if ins.opcode.startswith("brx"):
        table = ins.operands[1]
        assert isinstance(table, Symbol)
        names = decoder.function.tables[table.name]
        branch = Branch(tuple(labels[name] for name in names), number + 1, guard, False)
        branch.index = decoder.source(ins.operands[0], "u32", ins)
        return branch
    (label,) = ins.operands
    assert isinstance(label, Symbol)
    if label.name not in labels:
        raise refuse(ins, f"branches to {label.name}, which is no label")
    return Branch((labels[label.name],), number + 1, guard, ins.guard_negated)
