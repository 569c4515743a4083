"""Inlines calls: the body of the called function replaces the call.

Parameters and results of a call are .param variables of the caller: the callee's names for them
become the caller's.
"""

from __future__ import annotations

import msgspec

from kernelexp.emulator.machine.image import Variable
from kernelexp.emulator.machine.site import UnsupportedInstruction
from kernelexp.emulator.ptx.faults import refuse
from kernelexp.emulator.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

# Calls inlined in one kernel before it is taken for recursion.
MAX_CALLS = 1000
# Functions that the driver brings, by the opcode that a call of them becomes.
BUILTINS = {
    "vprintf": "builtin.vprintf",
    "__assertfail": "builtin.assertfail",
    "malloc": "builtin.malloc",
    "free": "builtin.free",
}


def inlined(module: Module, name: str) -> Function:
    """Entry `name` with no calls left; UnsupportedInstruction for a call that can't be followed."""
    function = module.functions[name]
    for number in range(MAX_CALLS):
        at = next(
            (i for i, ins in enumerate(function.instructions) if ins.opcode.startswith("call")),
            None,
        )
        if at is None:
            return function
        function = _put_in_place(module, function, at, f"@call{number}")
    raise UnsupportedInstruction(f"entry {name}: more than {MAX_CALLS} calls; recursion?")


def _put_in_place(module: Module, caller: Function, at: int, mark: str) -> Function:
    call = caller.instructions[at]
    results, target, arguments = _parts(call)
    if target in BUILTINS:
        callee = Function(name=target, entry=False)
        operands = tuple(Symbol(name) for name in (*results, *arguments))
        body = [msgspec.structs.replace(call, opcode=BUILTINS[target], operands=operands)]
    else:
        if target not in module.functions or call.guard is not None:
            raise refuse(call, "calls a function that is not in this PTX")
        callee = module.functions[target]
        body = _body(callee, results, arguments, mark)
    moved = len(body) - 1
    labels = {k: (v + moved if v > at else v) for k, v in caller.labels.items()}
    labels |= {k + mark: v + at for k, v in callee.labels.items()}
    if target not in BUILTINS:
        labels[_end(mark)] = at + len(body)
    tables = {k + mark: tuple(t + mark for t in v) for k, v in callee.tables.items()}
    return msgspec.structs.replace(
        caller,
        instructions=[*caller.instructions[:at], *body, *caller.instructions[at + 1 :]],
        labels=labels,
        registers=caller.registers | {k + mark: v for k, v in callee.registers.items()},
        tables=caller.tables | tables,
        variables=caller.variables + _variables(callee, mark),
    )


def _parts(call: Instruction) -> tuple[list[str], str, list[str]]:
    """Names of results, function and arguments of `call (results), function, (arguments)`."""
    operands = list(call.operands)
    results: list[str] = []
    if isinstance(operands[0], Vector):
        results = _names(operands.pop(0))
    target = operands.pop(0)
    arguments = _names(operands[0]) if operands else []
    name = target.name if isinstance(target, Symbol) else ""
    return results, name, arguments


def _names(vector: Operand) -> list[str]:
    items = vector.items if isinstance(vector, Vector) else ()
    return [item.name for item in items if isinstance(item, Symbol | Register)]


def _end(mark: str) -> str:
    return "@end" + mark


def _body(
    callee: Function, results: list[str], arguments: list[str], mark: str
) -> list[Instruction]:
    names = dict(zip([p.name for p in callee.results], results, strict=True))
    names |= dict(zip([p.name for p in callee.parameters], arguments, strict=True))
    local = {v.name for v in callee.variables if v.space != "shared"}
    names |= {name: name + mark for name in (*local, *callee.labels, *callee.tables)}
    body = []
    for ins in callee.instructions:
        guard = None if ins.guard is None else Register(ins.guard.name + mark)
        if ins.opcode in ("ret", "ret.uni"):
            operands: tuple[Operand, ...] = (Symbol(_end(mark)),)
            ins = msgspec.structs.replace(ins, opcode="bra", operands=operands, guard=guard)
        else:
            operands = tuple(_renamed(operand, names, mark) for operand in ins.operands)
            ins = msgspec.structs.replace(ins, operands=operands, guard=guard)
        body.append(ins)
    return body


def _variables(callee: Function, mark: str) -> list[Variable]:
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
