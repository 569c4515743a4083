"""Inlines calls: a call is replaced by the called function's body where that is possible, and where
there are not too many of them.

Parameters and results of a call are .param variables of the caller: the callee's names for them
become the caller's.
"""

from __future__ import annotations

import itertools

import msgspec

from warpsim.front.ptx.faults import refuse
from warpsim.front.ptx.outline import Outline
from warpsim.front.ptx.renaming import marked, marked_variables
from warpsim.front.ptx.syntax import (
    Function,
    Instruction,
    Operand,
    PtxModule,
    Register,
    Symbol,
    Vector,
)

# A return that gives up variables of the function: it goes on behind it.
LEAVE = "ret.frame"
# Calls inlined in one kernel: each copies the kernel. Functions that are called later than these
# are placed once.
MOST_INLINED = 1000
# Functions that the driver brings, by the opcode that a call of them becomes.
BUILTINS = {
    "vprintf": "builtin.vprintf",
    "__assertfail": "builtin.assertfail",
    "malloc": "builtin.malloc",
    "free": "builtin.free",
}


def inlined(module: PtxModule, name: str) -> Function:
    """Entry `name` with no calls left; UnsupportedInstruction for a call that can't be followed."""
    function, outline = module.functions[name], Outline(module)
    at = 0  # no call comes before it
    for number in itertools.count():
        at = _next_call(function, at)
        if at < len(function.instructions):
            mark = f"@call{number}" if number < MOST_INLINED else None
            function = _replaced(module, function, at, mark, outline)
            continue
        longer = outline.place(function)
        if longer is None:
            break
        function = longer
    return outline.finished(function)


def _next_call(function: Function, begin: int) -> int:
    """The first call at an index or behind it; the end where there is none."""
    every = function.instructions
    while begin < len(every) and not every[begin].opcode.startswith("call"):
        begin += 1
    return begin


def _replaced(
    module: PtxModule, caller: Function, at: int, mark: str | None, outline: Outline
) -> Function:
    """The caller with the call at an index replaced by what it does; mark: what the names of an
    inlined body end with, None to inline none."""
    call = caller.instructions[at]
    if call.guard is not None:
        raise refuse(call, "calls a function under a guard")
    results, target, arguments = _parts(call)
    if isinstance(target, Symbol) and target.name in BUILTINS:
        operands = tuple(Symbol(name) for name in (*results, *arguments))
        opcode = BUILTINS[target.name]
        return _with_body(
            caller, at, [msgspec.structs.replace(call, opcode=opcode, operands=operands)]
        )
    if isinstance(target, Symbol):
        if target.name not in module.functions:
            raise refuse(call, "calls a function that is not in this PTX")
        if mark is not None and not outline.recursive(target.name):
            return _put_in_place(
                module.functions[target.name], caller, at, mark, results, arguments
            )
        targets = [target.name]
    else:
        targets = outline.candidates(call, len(results), len(arguments))
    body, labels, tables = outline.call(call, targets, target, results, arguments)
    replaced = _with_body(caller, at, body)
    return msgspec.structs.replace(
        replaced,
        labels=replaced.labels | {name: at + v for name, v in labels.items()},
        tables=replaced.tables | tables,
    )


def _with_body(caller: Function, at: int, body: list[Instruction]) -> Function:
    """The caller with one instruction replaced by several."""
    moved = len(body) - 1
    return msgspec.structs.replace(
        caller,
        instructions=[*caller.instructions[:at], *body, *caller.instructions[at + 1 :]],
        labels={k: (v + moved if v > at else v) for k, v in caller.labels.items()},
    )


def _put_in_place(
    callee: Function,
    caller: Function,
    at: int,
    mark: str,
    results: list[str],
    arguments: list[str],
) -> Function:
    body = _body(callee, results, arguments, mark)
    frame = tuple(Symbol(v.name + mark) for v in callee.variables if v.space == "local")
    if frame and body[-1].opcode == "bra" and body[-1].guard is None:
        body[-1] = msgspec.structs.replace(body[-1], opcode=LEAVE, operands=frame)
    caller = _with_body(caller, at, body)
    labels = caller.labels | {k + mark: v + at for k, v in callee.labels.items()}
    labels[_end(mark)] = at + len(body)
    tables = {k + mark: tuple(t + mark for t in v) for k, v in callee.tables.items()}
    return msgspec.structs.replace(
        caller,
        labels=labels,
        registers=caller.registers | {k + mark: v for k, v in callee.registers.items()},
        tables=caller.tables | tables,
        variables=caller.variables + marked_variables(callee, mark),
    )


def _parts(call: Instruction) -> tuple[list[str], Operand, list[str]]:
    """Results, function or pointer, and arguments of `call (results), function, (arguments)`."""
    operands = list(call.operands)
    results: list[str] = []
    if isinstance(operands[0], Vector):
        results = _names(operands.pop(0))
    target = operands.pop(0)
    arguments = _names(operands[0]) if operands and isinstance(operands[0], Vector) else []
    return results, target, arguments


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
    end = (Symbol(_end(mark)),)
    return [
        msgspec.structs.replace(ins, opcode="bra", operands=end)
        if ins.opcode in ("ret", "ret.uni")
        else ins
        for ins in marked(callee, names, mark)
    ]
