"""Function bodies, flattened: names made unique, labels resolved innermost first."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import msgspec

from warpsim.front.ptx.declarations import SPACES, Declarations
from warpsim.front.ptx.expressions import expression
from warpsim.front.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    SpecialName,
    SubRegister,
    Symbol,
    Vector,
)
from warpsim.machine.core.site import Source

_REAL = re.compile(r"0[fFdD][0-9a-fA-F]|[0-9]+[.eE]")
_SPECIAL = re.compile(
    r"%(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyz]$"
    r"|%(?:laneid|warpid|nwarpid|smid|nsmid|gridid|clock|clock_hi|clock64|globaltimer"
    r"|globaltimer_lo|globaltimer_hi|cluster_ctarank|cluster_nctarank|is_explicit_cluster"
    r"|lanemask_(?:eq|le|lt|ge|gt)|dynamic_smem_size|total_smem_size|envreg\d+"
    r"|reserved_smem_offset_(?:begin|end|cap|0|1))$"
)


_TIGHT = re.compile(r"(?<=[\[{(@!\-|+]) | (?=[,;\]})|+])")
"""Spaces that are left out between tokens."""


def _spelled(words: list[str]) -> str:
    """Tokens as one writes them: `@%p1 ld.global.u32 %r1, [%rd1+-8];`"""
    return _TIGHT.sub("", " ".join(words))


class _Scope:
    """A brace scope of a body: its registers and labels, by the name the text uses."""

    def __init__(self, parent: _Scope | None, mark: str) -> None:
        self.parent = parent
        self.mark = mark
        self.registers: dict[str, str] = {}
        self.ranges: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.known: dict[str, Register] = {}
        """Registers that the text has named here so far."""

    def outwards(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def variable(self, name: str) -> str:
        return next((s.variables[name] for s in self.outwards() if name in s.variables), name)

    def register(self, name: str) -> str | None:
        stem = name.rstrip("0123456789")
        number = int(name[len(stem) :] or -1)
        for scope in self.outwards():
            if name in scope.registers:
                return scope.registers[name]
            if 0 <= number < scope.ranges.get(stem, 0):
                return name + scope.mark
        return None

    def label(self, name: str) -> str | None:
        return next((s.labels[name] for s in self.outwards() if name in s.labels), None)


class Body:
    """A function's body, flattened: names made unique, labels resolved innermost first."""

    def __init__(self, parser: Declarations, function: Function) -> None:
        self.p = parser
        self.function = function
        self.scopes = 0
        self.source: Source | None = None
        self.used_bytes: int | None = None
        """What a .pragma says of the next instruction."""
        self.pending: list[tuple[int, _Scope]] = []

    def parse(self) -> None:
        self.block(_Scope(None, ""))
        if not self.function.instructions:
            self.function.instructions.append(
                Instruction(opcode="ret", operands=(), line=self.p.line(), text="ret;")
            )
        for index, scope in self.pending:
            old = self.function.instructions[index]
            operands = tuple(self.resolve(operand, scope) for operand in old.operands)
            self.function.instructions[index] = msgspec.structs.replace(old, operands=operands)

    def resolve(self, operand: Operand, scope: _Scope) -> Operand:
        if isinstance(operand, Symbol):
            return Symbol(scope.label(operand.name) or operand.name, operand.offset)
        return operand

    def block(self, scope: _Scope) -> None:
        while not self.p.accept("}"):
            self.statement(scope)

    def statement(self, scope: _Scope) -> None:
        word = self.p.peek()
        if word == "{":
            self.p.take()
            self.scopes += 1
            self.block(_Scope(scope, f"@{self.scopes}"))
        elif word == ";":
            self.p.take()
        elif self.p.peek(1) == ":" and not word.startswith("."):
            self.label(scope)
        elif word in (".reg", ".loc", ".pragma", ".file") or word in SPACES:
            self.directive(scope, word)
        elif word.startswith("."):
            raise self.p.fault(f"{word!r} is not understood in a body")
        else:
            self.instruction(scope)

    def label(self, scope: _Scope) -> None:
        name = self.p.take()
        self.p.expect(":")
        if self.p.peek() in (".callprototype", ".calltargets"):
            self.p.skip_to_semicolon()
            return
        unique = name + scope.mark
        scope.labels[name] = unique
        if self.p.peek() == ".branchtargets":
            self.p.take()
            targets = [self.p.take()]
            while self.p.accept(","):
                targets.append(self.p.take())
            self.p.expect(";")
            self.function.tables[unique] = tuple(target + scope.mark for target in targets)
        self.function.labels[unique] = len(self.function.instructions)

    def directive(self, scope: _Scope, word: str) -> None:
        if word == ".reg":
            self.registers(scope)
        elif word == ".loc":
            self.location()
        elif word == ".pragma":
            self.pragma()
        elif word == ".file":
            self.p.file()
        else:
            # A call's parameters are declared again, under the same names, for each call.
            for variable in self.p.variables():
                unique = variable.name + scope.mark
                scope.variables[variable.name] = unique
                self.function.variables.append(msgspec.structs.replace(variable, name=unique))

    def pragma(self) -> None:
        self.p.expect(".pragma")
        match = re.fullmatch(r'"used_bytes_mask (\w+)"', self.p.peek())
        if match:
            self.used_bytes = int(match[1], 0)
        self.p.skip_to_semicolon()

    def registers(self, scope: _Scope) -> None:
        self.p.expect(".reg")
        scope.known.clear()
        kind = self.p.take()[1:]
        while True:
            name = self.p.take()
            if self.p.accept("<"):
                scope.ranges[name] = self.p.integer()
                self.p.expect(">")
                kind_key = name + "<>" + scope.mark
                self.function.registers[kind_key] = kind
            else:
                scope.registers[name] = name + scope.mark
                self.function.registers[name + scope.mark] = kind
            if not self.p.accept(","):
                break
        self.p.expect(";")

    def location(self) -> None:
        """.loc file line column[, function_name label[+n], inlined_at file line column]"""
        self.p.expect(".loc")
        file, line, column = self.p.integer(), self.p.integer(), self.p.integer()
        caller: Source | None = None
        while self.p.accept(","):
            word = self.p.take()
            if word == "function_name":
                self.p.take()
                if self.p.accept("+"):
                    self.p.integer()
            elif word == "inlined_at":
                at = (self.p.integer(), self.p.integer(), self.p.integer())
                caller = self.p.inlined.get(at) or Source(self.p.files.get(at[0], "?"), at[1])
        if line == 0:  # Code of no line: leave the last one standing.
            return
        self.source = Source(self.p.files.get(file, "?"), line, caller)
        self.p.inlined[file, line, column] = self.source

    # Instructions

    def instruction(self, scope: _Scope) -> None:
        line, first = self.p.line(), self.p.at
        guard: Register | None = None
        negated = False
        if self.p.accept("@"):
            negated = self.p.accept("!")
            name = self.p.take()
            part = self.operand_name(name, scope)
            if not isinstance(part, Register):
                raise self.p.fault(f"{name!r} guards an instruction but is no register")
            guard = part
        opcode = self.p.take()
        operands = self.call_operands(scope) if opcode.startswith("call") else self.operands(scope)
        self.p.expect(";")
        words = self.p.texts[first : self.p.at]
        if opcode.startswith(("bra", "brx")):
            self.pending.append((len(self.function.instructions), scope))
        self.function.instructions.append(
            Instruction(
                opcode=opcode,
                operands=tuple(operands),
                guard=guard,
                guard_negated=negated,
                line=line,
                source=self.source,
                text=_spelled(words),
                used_bytes=self.used_bytes,
            )
        )
        self.used_bytes = None

    def operands(self, scope: _Scope) -> list[Operand]:
        read: list[Operand] = []
        while self.p.peek() != ";":
            read.append(self.operand(scope))
            if not self.p.accept(","):
                break
        return read

    def call_operands(self, scope: _Scope) -> list[Operand]:
        """(results), function, (arguments): results and arguments as vectors of symbols."""
        operands: list[Operand] = []
        while self.p.peek() != ";":
            if self.p.accept("("):
                items: list[Operand] = []
                while not self.p.accept(")"):
                    items.append(self.operand(scope))
                    self.p.accept(",")
                operands.append(Vector(tuple(items)))
            else:
                operands.append(self.operand(scope))
            self.p.accept(",")
        return operands

    def operand(self, scope: _Scope) -> Operand:
        if self.p.accept("{"):
            items = []
            while not self.p.accept("}"):
                items.append(self.operand(scope))
                self.p.accept(",")
            return Vector(tuple(items))
        if self.p.accept("["):
            return self.address(scope)
        if self.p.accept("!"):
            return Not(self.operand(scope))
        value = self.simple(scope)
        if self.p.accept("|"):
            return Pair(value, self.simple(scope))
        if self.p.accept("+") and isinstance(value, Symbol):
            return Symbol(value.name, expression(self.p))
        return value

    def simple(self, scope: _Scope) -> Operand:
        word = self.p.peek()
        if word in ("-", "+", "~", "(") or word[:1].isdigit():
            return self.immediate()
        self.p.take()
        return None if word == "_" else self.operand_name(word, scope)

    def immediate(self) -> Immediate:
        negative = self.p.peek() == "-" and _REAL.match(self.p.peek(1))
        text = self.p.peek(1) if negative else self.p.peek()
        if not _REAL.match(text):
            return Immediate(expression(self.p))
        self.p.at += 2 if negative else 1
        width = 32 if text[:2] in ("0f", "0F") else 64
        if text[1:2] in ("f", "F", "d", "D"):
            value = int(text[2:], 16)
        else:
            value = int.from_bytes(struct.pack("<d", float(text)), "little")
        return Immediate(value ^ (1 << width - 1 if negative else 0), width)

    def operand_name(
        self, name: str, scope: _Scope
    ) -> Register | SpecialName | Symbol | Immediate | SubRegister:
        if name in scope.known:
            return scope.known[name]
        unique = scope.register(name)
        if unique is not None:
            self.declare(name, unique)
            scope.known[name] = Register(unique)
            return scope.known[name]
        if name == "WARP_SZ":
            return Immediate(32)
        if _SPECIAL.match(name):
            return SpecialName(name)
        stem, _, which = name.rpartition(".")
        if re.fullmatch(r"[bh][0-7]+", which) and scope.register(stem) is not None:
            whole = self.operand_name(stem, scope)
            assert isinstance(whole, Register)
            return SubRegister(whole, which)
        if name.startswith("%"):
            raise self.p.fault(f"register {name!r} is not declared")
        return Symbol(scope.variable(name))

    def declare(self, name: str, unique: str) -> None:
        if unique not in self.function.registers:
            mark = unique[len(name) :]
            kind = self.function.registers[name.rstrip("0123456789") + "<>" + mark]
            self.function.registers[unique] = kind

    def address(self, scope: _Scope) -> Address:
        base = self.simple(scope)
        offset = 0
        extra: list[Operand] = []
        while not self.p.accept("]"):
            if self.p.accept("+") or self.p.peek() == "-":
                offset += expression(self.p)
            else:
                self.p.expect(",")
                extra.append(self.operand(scope))
        return Address(base, offset, tuple(extra))
