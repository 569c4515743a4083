"""Edits of a parsed entry: an instruction dropped, replaced or moved, an operand changed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

import msgspec

from warpsim.front.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)

Edit = Callable[[Function], Function]
"""Makes a changed copy of an entry."""

_COMPUTE = {"add": operator.add, "xor": operator.xor, "and": operator.and_}


def registers(operand: Operand) -> Iterator[str]:
    """Names of the registers in an operand."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers(item)
    elif isinstance(operand, Pair):
        yield from registers(operand.first)
        yield from registers(operand.second)
    elif isinstance(operand, Not):
        yield from registers(operand.operand)
    elif isinstance(operand, Address):
        for part in (operand.base, *operand.extra):
            yield from registers(part)


def splice(function: Function, at: int, new: list[Instruction], old: int = 1) -> Function:
    """Replaces `old` instructions; labels go on naming what they named."""
    shift = len(new) - old
    labels = {
        name: index + shift if index >= at + max(old, 1) else min(index, at)
        for name, index in function.labels.items()
    }
    instructions = function.instructions
    return msgspec.structs.replace(
        function,
        instructions=[*instructions[:at], *new, *instructions[at + old :]],
        labels=labels,
        registers=dict(function.registers),
    )


def replace(at: int, *new: Instruction) -> Edit:
    return lambda function: splice(function, at, list(new))


def move(at: int, to: int) -> Edit:
    """Moves an instruction so that it comes just before (to < at) or just after (to > at)."""

    def edit(function: Function) -> Function:
        instructions = list(function.instructions)
        instructions.insert(to, instructions.pop(at))
        return msgspec.structs.replace(function, instructions=instructions)

    return edit


def like(instruction: Instruction, opcode: str, *operands: Operand) -> Instruction:
    """Another instruction at the same place of the source."""
    return msgspec.structs.replace(instruction, opcode=opcode, operands=operands)


def renamed(at: int, instruction: Instruction, opcode: str) -> Edit:
    return replace(at, msgspec.structs.replace(instruction, opcode=opcode))


def with_operand(instruction: Instruction, number: int, operand: Operand) -> Instruction:
    operands = list(instruction.operands)
    operands[number] = operand
    return msgspec.structs.replace(instruction, operands=tuple(operands))


def offset(at: int, instruction: Instruction, number: int, by: int) -> Edit:
    """Moves the address in an operand by some bytes."""
    address = instruction.operands[number]
    assert isinstance(address, Address)
    moved = msgspec.structs.replace(address, offset=address.offset + by)
    return replace(at, with_operand(instruction, number, moved))


def compute(
    at: int, instruction: Instruction, number: int, operation: str, by: int, bits: int = 32
) -> Edit:
    """Changes the value of an operand: adds, flips bits or keeps only some."""

    def edit(function: Function) -> Function:
        old = instruction.operands[number]
        new, before = computed(instruction, old, operation, by, bits)
        changed = splice(function, at, [*before, with_operand(instruction, number, new)])
        if before:
            changed.registers[MUTANT] = f"b{bits}"
        return changed

    return edit


MUTANT = "%mutant"


def computed(
    instruction: Instruction, old: Operand, operation: str, by: int, bits: int
) -> tuple[Operand, list[Instruction]]:
    """(the changed value, what computes it)."""
    by %= 1 << bits
    if isinstance(old, Immediate):
        return Immediate(_COMPUTE[operation](old.value, by) % (1 << bits)), []
    kind = f"u{bits}" if operation == "add" else f"b{bits}"
    opcode = f"{operation}.{kind}"
    return Register(MUTANT), [like(instruction, opcode, Register(MUTANT), old, Immediate(by))]


def coordinate(at: int, instruction: Instruction, number: int, which: int) -> Edit:
    """Adds 1 to a coordinate of a tensor copy's box."""

    def edit(function: Function) -> Function:
        address = instruction.operands[number]
        assert isinstance(address, Address)
        vector = address.extra[0]
        assert isinstance(vector, Vector)
        items = list(vector.items)
        items[which], before = computed(instruction, items[which], "add", 1, 32)
        moved = msgspec.structs.replace(address, extra=(Vector(tuple(items)), *address.extra[1:]))
        changed = splice(function, at, [*before, with_operand(instruction, number, moved)])
        if before:
            changed.registers[MUTANT] = "b32"
        return changed

    return edit
