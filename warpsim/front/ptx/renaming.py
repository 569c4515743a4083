"""A function's body under other names, for a place in another function."""

from __future__ import annotations

import msgspec

from warpsim.front.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from warpsim.machine.core.image import Variable


def marked(callee: Function, names: dict[str, str], mark: str) -> list[Instruction]:
    """Its instructions, with `mark` behind the names of its own, and `names` for others."""
    local = {v.name for v in callee.variables if v.space != "shared"}
    names = names | {name: name + mark for name in (*local, *callee.labels, *callee.tables)}
    body = []
    for ins in callee.instructions:
        guard = None if ins.guard is None else Register(ins.guard.name + mark)
        operands = tuple(_renamed(operand, names, mark) for operand in ins.operands)
        body.append(msgspec.structs.replace(ins, operands=operands, guard=guard))
    return body


def marked_variables(callee: Function, mark: str) -> list[Variable]:
    """Its variables; those in shared memory are the same for all calls."""
    return [
        v if v.space == "shared" else msgspec.structs.replace(v, name=v.name + mark)
        for v in callee.variables
    ]


def _renamed(operand: Operand, names: dict[str, str], mark: str) -> Operand:
    if isinstance(operand, Register):
        return Register(operand.name + mark)
    if isinstance(operand, Symbol):
        return Symbol(names.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, Vector):
        return Vector(tuple(_renamed(item, names, mark) for item in operand.items))
    if isinstance(operand, Pair):
        return Pair(_renamed(operand.first, names, mark), _renamed(operand.second, names, mark))
    if isinstance(operand, Not):
        return Not(_renamed(operand.operand, names, mark))
    if isinstance(operand, Address):
        extra = tuple(_renamed(item, names, mark) for item in operand.extra)
        return Address(_renamed(operand.base, names, mark), operand.offset, extra)
    return operand
