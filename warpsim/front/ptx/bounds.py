"""Guards by which threads stay inside of a problem: row < M, i >= n.

They compare where a thread is with a scalar argument, as whole numbers. Those of loops are not
among them: whether a loop is entered is no matter of how a problem ends. Nor are those of a whole
CTA, such as the loop over tiles of a persistent kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpsim.front.ptx.cfg import is_exit, targets
from warpsim.front.ptx.syntax import (
    Function,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    SpecialName,
    SubRegister,
    Vector,
)

_THREAD, _SIZE, _INSIDE = 1, 2, 4
"""What a value comes from: the place of a thread, a scalar argument, a comparison of both."""
_PLACES = re.compile(r"%?(tid|laneid)\b")
_WHOLE = re.compile(
    r"(add|sub|mul|mul24|mad|mad24|min|max|abs|neg|not|and|or|xor|shl|shr|shf|lop3|bfe|bfi|prmt|div"
    r"|rem|mov|cvt|selp|setp)\.(?!.*\b(f|bf)(16|32|64))"
)
_ORDERED = re.compile(r"setp\.(lt|le|gt|ge|lo|ls|hi|hs)\..*[us](16|32|64)$")


def find(function: Function) -> tuple[tuple[int, bool], ...]:
    """The numbers of the instructions that such a guard decides, and whether its lanes leave there
    by a branch or an exit, whose other way nothing else leads to."""
    body = function.instructions
    origins = _origins(function)
    loops = {_line(ins) for number, ins in enumerate(body) if _goes_back(function, number, ins)}
    joined = {target for ins in body if _branches(ins) for target in targets(function, ins)}
    found: list[tuple[int, bool]] = []
    for number, ins in enumerate(body):
        if ins.guard is None or not origins.get(ins.guard.name, 0) & _INSIDE or _line(ins) in loops:
            continue
        leads = _branches(ins) or is_exit(ins)
        if not leads or (number + 1 < len(body) and number + 1 not in joined):
            found.append((number, leads))
    return tuple(found)


def _line(ins: Instruction) -> tuple[str, int]:
    """Wherever it was inlined."""
    return (ins.source.file, ins.source.line) if ins.source else ("", ins.line)


def _branches(ins: Instruction) -> bool:
    return ins.opcode.startswith(("bra", "brx"))


def _goes_back(function: Function, number: int, ins: Instruction) -> bool:
    return _branches(ins) and any(target <= number for target in targets(function, ins))


def _origins(function: Function) -> dict[str, int]:
    """What the value of each register comes from, whatever way the code takes."""
    origins: dict[str, int] = {}
    rules = [rule for ins in function.instructions if (rule := _rule(ins))]
    changed = True
    while changed:
        changed = False
        for written, read, bits, compares in rules:
            for name in read:
                bits |= origins.get(name, 0)
            if compares:
                bits = _INSIDE if bits & _THREAD and bits & _SIZE else 0
            for name in written:
                if origins.get(name, 0) | bits != origins.get(name, 0):
                    origins[name] = origins.get(name, 0) | bits
                    changed = True
    return origins


def _rule(ins: Instruction) -> tuple[list[str], list[str], int, bool] | None:
    """The registers that an instruction writes, those that its result comes from, what else that
    comes from, and whether it compares these."""
    if ins.opcode.startswith("ld.param"):
        return [*_registers(ins.operands[0])], [], _SIZE, False
    compares = _ORDERED.match(ins.opcode) is not None
    if not _WHOLE.match(ins.opcode) or (ins.opcode.startswith("setp.") and not compares):
        return None
    sources = ins.operands[1:]
    known = _THREAD * any(isinstance(x, SpecialName) and _PLACES.match(x.name) for x in sources)
    read = [name for operand in sources for name in _registers(operand)]
    return [*_registers(ins.operands[0])], read, known, compares


def _registers(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, SubRegister):
        yield operand.register.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, Not):
        yield from _registers(operand.operand)
