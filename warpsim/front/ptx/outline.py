"""Calls that can't be inlined: of recursive functions, and through function pointers.

Such a function is placed once, behind the entry. A call hands its arguments over in local variables
(`@param0`, ...), notes where it goes on (`frame.push`) and branches; `ret` becomes a branch to
where the lane's innermost call goes on, which takes the registers back (`frame.pop`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from warpsim.front.ptx.faults import refuse
from warpsim.front.ptx.renaming import marked, marked_variables
from warpsim.front.ptx.syntax import (
    Function,
    Immediate,
    Instruction,
    Operand,
    PtxModule,
    Register,
    Symbol,
    Vector,
)
from warpsim.machine.core.image import Variable

RETURNS = "@returns"
_RETURN, _CALLEE = "%return@", "%callee@"


def callees(function: Function) -> set[str]:
    """Functions that a body calls by name."""
    named: set[str] = set()
    for ins in function.instructions:
        if ins.opcode.startswith("call"):
            named |= {operand.name for operand in ins.operands if isinstance(operand, Symbol)}
    return named


def recursive(module: PtxModule, name: str) -> bool:
    """Whether a function may call itself, directly or through others."""
    seen: set[str] = set()
    rest = callees(module.functions[name])
    while rest:
        other = rest.pop()
        if other == name:
            return True
        if other not in seen and other in module.functions:
            seen.add(other)
            rest |= callees(module.functions[other])
    return False


def _instruction(like: Instruction, opcode: str, *operands: Operand) -> Instruction:
    return msgspec.structs.replace(
        like, opcode=opcode, operands=operands, guard=None, guard_negated=False
    )


def _copy(like: Instruction, to: str, source: str, size: int) -> Instruction:
    return _instruction(like, "frame.copy", Symbol(to), Symbol(source), Immediate(size))


def _passed(kind: str, variables: Sequence[Variable]) -> list[str]:
    return [f"@{kind}{index}" for index in range(len(variables))]


class Outline:
    """The functions that were placed behind an entry, and the calls of them."""

    def __init__(self, module: PtxModule) -> None:
        self._module = module
        self._placed: set[str] = set()
        self._waiting: list[str] = []
        self._calls = 0
        self._recursive: dict[str, bool] = {}
        self.variables: dict[str, Variable] = {}

    def recursive(self, name: str) -> bool:
        """Whether a function may call itself, directly or through others."""
        if name not in self._recursive:
            self._recursive[name] = recursive(self._module, name)
        return self._recursive[name]

    def candidates(self, call: Instruction, results: int, arguments: int) -> list[str]:
        """The functions that a call through a pointer may reach."""
        names = [
            f.name
            for f in self._module.functions.values()
            if not f.entry and (len(f.results), len(f.parameters)) == (results, arguments)
        ]
        if not names:
            raise refuse(call, "calls a function that is not in this PTX")
        return names

    def call(
        self,
        call: Instruction,
        targets: list[str],
        pointer: Operand,
        results: list[str],
        arguments: list[str],
    ) -> tuple[list[Instruction], dict[str, int], dict[str, tuple[str, ...]]]:
        """(what replaces a call, its labels from its beginning, its branch tables)."""
        number, callee = self._calls, self._module.functions[targets[0]]
        self._calls += 1
        for target in targets:
            if target not in self._placed:
                self._placed.add(target)
                self._waiting.append(target)
        pairs = zip(_passed("param", callee.parameters), arguments, callee.parameters, strict=True)
        body = [_copy(call, to, source, variable.size) for to, source, variable in pairs]
        body.append(_instruction(call, "frame.push", Immediate(number)))
        tables: dict[str, tuple[str, ...]] = {}
        if isinstance(pointer, Register):
            tables[f"@callees{number}"] = tuple(_entry(target) for target in targets)
            named = Vector(tuple(Symbol(target) for target in targets))
            body.append(_instruction(call, "frame.find", Register(_CALLEE), pointer, named))
            table = Symbol(f"@callees{number}")
            body.append(_instruction(call, "brx.idx", Register(_CALLEE), table))
        else:
            body.append(_instruction(call, "bra", Symbol(_entry(targets[0]))))
        labels = {f"@back{number}": len(body)}
        body.append(_instruction(call, "frame.pop"))
        given = zip(results, _passed("result", callee.results), callee.results, strict=True)
        body += [_copy(call, to, source, variable.size) for to, source, variable in given]
        return body, labels, tables

    def place(self, function: Function) -> Function | None:
        """The function with one more that is called placed behind it; None if there is none."""
        if not self._waiting:
            return None
        name = self._waiting.pop()
        callee, mark = self._module.functions[name], f"@of:{name}"
        last = callee.instructions[-1]
        if self.recursive(name) and any(v.space == "local" for v in callee.variables):
            raise refuse(last, "is in a recursive function with local variables")
        body = [*function.instructions, _instruction(last, "ret")]
        labels = function.labels | {_entry(name): len(body)}
        for passed, variable in self._passes("param", callee.parameters):
            body.append(_copy(last, variable.name + mark, passed, variable.size))
        moved = self._append(body, callee, mark)
        labels |= {label + mark: moved[at] for label, at in callee.labels.items()}
        tables = {k + mark: tuple(t + mark for t in v) for k, v in callee.tables.items()}
        own = [
            msgspec.structs.replace(v, name=v.name + mark, space="param")
            for v in (*callee.parameters, *callee.results)
        ]
        registers = {k + mark: v for k, v in callee.registers.items()}
        return msgspec.structs.replace(
            function,
            instructions=body,
            labels=labels,
            registers=function.registers | registers,
            tables=function.tables | tables,
            variables=[*function.variables, *own, *marked_variables(callee, mark)],
        )

    def _append(self, body: list[Instruction], callee: Function, mark: str) -> list[int]:
        """Appends a function's instructions; where each of them, and its end, has gone."""
        own = {v.name: v.name + mark for v in (*callee.parameters, *callee.results)}
        results = self._passes("result", callee.results)
        moved: list[int] = []
        for ins in marked(callee, own, mark):
            moved.append(len(body))
            if ins.opcode not in ("ret", "ret.uni"):
                body.append(ins)
                continue
            if ins.guard is not None:
                raise refuse(ins, "returns from a called function under a guard")
            body += [_copy(ins, to, v.name + mark, v.size) for to, v in results]
            body.append(_instruction(ins, "frame.return", Register(_RETURN)))
            body.append(_instruction(ins, "brx.idx", Register(_RETURN), Symbol(RETURNS)))
        return [*moved, len(body)]

    def _passes(self, kind: str, variables: Sequence[Variable]) -> list[tuple[str, Variable]]:
        """(what each argument or result is handed over in, the variable of the function)."""
        pairs = list(zip(_passed(kind, variables), variables, strict=True))
        for name, variable in pairs:
            old = self.variables.get(name)
            if old is None or old.size < variable.size:
                self.variables[name] = msgspec.structs.replace(
                    variable, name=name, space="param", align=16
                )
        return pairs

    def finished(self, function: Function) -> Function:
        """The function when all calls have been replaced."""
        if not self._calls:
            return function
        returns = tuple(f"@back{number}" for number in range(self._calls))
        return msgspec.structs.replace(
            function,
            tables=function.tables | {RETURNS: returns},
            registers=function.registers | {_RETURN: "b32", _CALLEE: "b32"},
            variables=[*function.variables, *self.variables.values()],
        )


def _entry(name: str) -> str:
    return f"@enter:{name}"
