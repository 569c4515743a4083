"""PTX text to a Module.

The dialect is that of nvcc 13.0, inline asm included: brace-scoped registers and labels that repeat
(every inlined wait loop brings its own LAB_WAIT), several instructions a line, .loc line tables.
"""

from __future__ import annotations

import re
import struct

import msgspec

from kernelexp.emulator.ptx.faults import PtxSyntaxError
from kernelexp.emulator.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Source,
    Special,
    Symbol,
    Variable,
    Vector,
)
from kernelexp.emulator.ptx.tokens import Token, tokens

_SPACES = {".global", ".const", ".shared", ".local", ".param"}
_LINKAGE = {".extern", ".visible", ".weak", ".common"}
_TYPE = re.compile(r"\.(?:pred|[busf](?:8|16|32|64|128)|f16x2|bf16|bf16x2|b8x4)$")
_SPECIAL = re.compile(
    r"%(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyz]$"
    r"|%(?:laneid|warpid|nwarpid|smid|nsmid|gridid|clock|clock_hi|clock64|globaltimer"
    r"|globaltimer_lo|globaltimer_hi|cluster_ctarank|cluster_nctarank|is_explicit_cluster"
    r"|lanemask_(?:eq|le|lt|ge|gt)|dynamic_smem_size|total_smem_size)$"
)


def size_of(type_name: str) -> int:
    """Bytes of one element: size_of("b32") is 4."""
    if type_name == "pred":
        return 1
    return max(1, int(re.sub(r"^\D+(\d+).*$", r"\1", type_name)) // 8)


def parse(text: str) -> Module:
    """The module that `text` spells; PtxSyntaxError names the PTX line of what can't be read."""
    return _Parser(tokens(text)).module()


def _spelled(words: list[str]) -> str:
    """Tokens as one writes them: `@%p1 ld.global.u32 %r1, [%rd1+-8];`"""
    text = " ".join(words)
    for tight in ("[", "{", "(", "@", "!", "-", "|", "+"):
        text = text.replace(f"{tight} ", tight)
    for tight in (",", ";", "]", "}", ")", "|", "+"):
        text = text.replace(f" {tight}", tight)
    return text


class _Scope:
    """A brace scope of a body: its registers and labels, by the name the text uses."""

    def __init__(self, parent: _Scope | None, mark: str) -> None:
        self.parent = parent
        self.mark = mark
        self.registers: dict[str, str] = {}
        self.ranges: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def variable(self, name: str) -> str:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.parent
        return name

    def register(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.registers:
                return scope.registers[name]
            stem = name.rstrip("0123456789")
            if (
                stem in scope.ranges
                and stem != name
                and int(name[len(stem) :]) < scope.ranges[stem]
            ):
                return name + scope.mark
            scope = scope.parent
        return None

    def label(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.at = 0
        self.files: dict[int, str] = {}
        self.inlined: dict[tuple[int, int, int], Source] = {}
        self.result = Module()
        for index, token in enumerate(found):  # nvcc writes the file table at the end.
            if token.text == ".file":
                self.files[int(found[index + 1].text)] = found[index + 2].text.strip('"')

    # Tokens

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def line(self) -> int:
        return self.tokens[min(self.at, len(self.tokens) - 1)].line if self.tokens else 0

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise PtxSyntaxError(f"PTX line {self.line()}: the text ends too early.")
        self.at += 1
        return self.tokens[self.at - 1].text

    def expect(self, text: str) -> None:
        if self.peek() != text:
            raise self.fault(f"expected {text!r}, found {self.peek()!r}")
        self.at += 1

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.at += 1
            return True
        return False

    def fault(self, sentence: str) -> PtxSyntaxError:
        return PtxSyntaxError(f"PTX line {self.line()}: {sentence}.")

    def integer(self) -> int:
        negative = self.accept("-")
        text = self.take().rstrip("U")
        try:
            value = int(text, 0)
        except ValueError:
            raise self.fault(f"expected an integer, found {text!r}") from None
        return -value if negative else value

    # Module

    def module(self) -> Module:
        while self.at < len(self.tokens):
            self.module_item()
        return self.result

    def module_item(self) -> None:
        word = self.peek()
        if word == ".version":
            self.take()
            self.result.version = self.take()
        elif word == ".target":
            self.take()
            self.result.target = self.take()
            while self.accept(","):
                self.take()
        elif word == ".address_size":
            self.take()
            self.integer()
        elif word == ".file":
            self.file()
        elif word == ".section":
            self.skip_braces()
        elif word in (".pragma", ".alias"):
            self.skip_to_semicolon()
        else:
            self.declaration()

    def file(self) -> None:
        self.expect(".file")
        number = self.integer()
        self.files[number] = self.take().strip('"')
        while self.accept(","):
            self.integer()

    def skip_braces(self) -> None:
        while self.take() != "{":
            pass
        depth = 1
        while depth:
            word = self.take()
            depth += (word == "{") - (word == "}")

    def skip_to_semicolon(self) -> None:
        while self.take() != ";":
            pass

    def declaration(self) -> None:
        extern = False
        while self.peek() in _LINKAGE:
            extern |= self.take() == ".extern"
        word = self.peek()
        if word in (".entry", ".func"):
            self.function()
        elif word in _SPACES:
            self.result.variables += self.variables(extern)
        else:
            raise self.fault(f"{word!r} is not understood at module level")

    # Variables

    def variables(self, extern: bool = False) -> list[Variable]:
        """.space .align n .type name[size] = {...}, name, ...;"""
        declared = [self.variable(extern)]
        while self.accept(","):
            first = declared[0]
            declared.append(self.declarator(first.space, first.type, first.align, 1, extern))
        self.expect(";")
        return declared

    def variable(self, extern: bool = False) -> Variable:
        space = self.take().lstrip(".")
        align, count, type_name = 0, 1, ""
        while self.peek().startswith("."):
            word = self.take()
            if word == ".align":
                align = self.integer()
            elif word in (".v2", ".v4"):
                count = int(word[2:])
            elif _TYPE.match(word):
                type_name = word[1:]
            elif word == ".attribute":
                self.skip_parentheses()
            elif word != ".ptr" and word not in _SPACES:
                raise self.fault(f"{word!r} is not understood in a declaration")
        return self.declarator(space, type_name, align, count, extern)

    def skip_parentheses(self) -> None:
        self.expect("(")
        while self.take() != ")":
            pass

    def declarator(self, space: str, kind: str, align: int, count: int, extern: bool) -> Variable:
        name = self.take()
        element = size_of(kind)
        size = element * count
        while self.accept("["):
            size *= 0 if self.peek() == "]" else self.integer()
            self.expect("]")
        data = self.initialiser(element) if self.accept("=") else b""
        if space != "shared" or not extern:
            size = max(size, len(data))
        return Variable(
            name=name, space=space, type=kind, align=align or element, size=size, data=data
        )

    def initialiser(self, element: int) -> bytes:
        if not self.accept("{"):
            return self.literal(element)
        parts = []
        while not self.accept("}"):
            parts.append(self.initialiser(element))
            self.accept(",")
        return b"".join(parts)

    def literal(self, element: int) -> bytes:
        text = self.peek()
        if text[:2] in ("0f", "0F", "0d", "0D"):
            self.take()
            return int(text[2:], 16).to_bytes(element, "little")
        if not text[:1].isdigit() and text != "-":
            raise self.fault(
                f"initial value {text!r}: addresses in initial values are not modelled"
            )
        return (self.integer() % (1 << (8 * element))).to_bytes(element, "little")

    # Functions

    def function(self) -> None:
        entry = self.take() == ".entry"
        results = self.parameter_list() if self.peek() == "(" else ()
        function = Function(name=self.take(), entry=entry, results=results)
        if self.peek() == "(":
            function.parameters = self.parameter_list()
        self.directives(function)
        if self.accept(";"):
            return
        self.expect("{")
        _Body(self, function).parse()
        self.result.functions[function.name] = function

    def parameter_list(self) -> tuple[Variable, ...]:
        self.expect("(")
        found = []
        while not self.accept(")"):
            if self.peek() == ".reg":
                self.take()
                found.append(self.declarator("param", self.take()[1:], 0, 1, False))
            else:
                found.append(self.parameter())
            self.accept(",")
        return tuple(found)

    def parameter(self) -> Variable:
        """Like a variable, but after `.ptr` come a state space and an alignment of its own."""
        space, align, kind, pointer = self.take().lstrip("."), 0, "", False
        while self.peek().startswith("."):
            word = self.take()
            if word == ".ptr":
                pointer = True
            elif word == ".align":
                value = self.integer()
                align = align if pointer else value
            elif _TYPE.match(word):
                kind = word[1:]
            elif word not in _SPACES:
                raise self.fault(f"{word!r} is not understood in a parameter")
        return self.declarator(space, kind, align, 1, False)

    def directives(self, function: Function) -> None:
        while self.peek().startswith("."):
            word = self.take()[1:]
            numbers = []
            while self.peek()[:1].isdigit():
                numbers.append(self.integer())
                self.accept(",")
            if word == "pragma":
                self.skip_to_semicolon()
            function.directives[word] = tuple(numbers)


class _Body:
    """A function's body, flattened: names made unique, labels resolved innermost first."""

    def __init__(self, parser: _Parser, function: Function) -> None:
        self.p = parser
        self.function = function
        self.scopes = 0
        self.source: Source | None = None
        self.pending: list[tuple[int, _Scope]] = []

    def parse(self) -> None:
        self.block(_Scope(None, ""))
        for index, scope in self.pending:
            old = self.function.instructions[index]
            operands = tuple(self.resolve(operand, scope) for operand in old.operands)
            self.function.instructions[index] = Instruction(
                opcode=old.opcode,
                operands=operands,
                guard=old.guard,
                guard_negated=old.guard_negated,
                line=old.line,
                source=old.source,
                text=old.text,
            )

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
        elif word in (".reg", ".loc", ".pragma", ".file") or word in _SPACES:
            self.directive(scope, word)
        elif word.startswith("."):
            raise self.p.fault(f"{word!r} is not understood in a body")
        else:
            self.instruction(scope)

    def label(self, scope: _Scope) -> None:
        name = self.p.take()
        self.p.expect(":")
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
            self.p.skip_to_semicolon()
        elif word == ".file":
            self.p.file()
        else:
            # A call's parameters are declared again, under the same names, for each call.
            for variable in self.p.variables():
                unique = variable.name + scope.mark
                scope.variables[variable.name] = unique
                self.function.variables.append(msgspec.structs.replace(variable, name=unique))

    def registers(self, scope: _Scope) -> None:
        self.p.expect(".reg")
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
            found = self.operand_name(name, scope)
            if not isinstance(found, Register):
                raise self.p.fault(f"{name!r} guards an instruction but is no register")
            guard = found
        opcode = self.p.take()
        operands = self.call_operands(scope) if opcode.startswith("call") else self.operands(scope)
        self.p.expect(";")
        words = [token.text for token in self.p.tokens[first : self.p.at]]
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
            )
        )

    def operands(self, scope: _Scope) -> list[Operand]:
        found: list[Operand] = []
        while self.p.peek() != ";":
            found.append(self.operand(scope))
            if not self.p.accept(","):
                break
        return found

    def call_operands(self, scope: _Scope) -> list[Operand]:
        """(results), function, (arguments): results and arguments as vectors of symbols."""
        found: list[Operand] = []
        while self.p.peek() != ";":
            if self.p.accept("("):
                items: list[Operand] = []
                while not self.p.accept(")"):
                    items.append(self.operand(scope))
                    self.p.accept(",")
                found.append(Vector(tuple(items)))
            else:
                found.append(self.operand(scope))
            self.p.accept(",")
        return found

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
            return Symbol(value.name, self.p.integer())
        return value

    def simple(self, scope: _Scope) -> Operand:
        word = self.p.peek()
        if word == "-" or word[:1].isdigit():
            return self.immediate()
        self.p.take()
        return None if word == "_" else self.operand_name(word, scope)

    def immediate(self) -> Immediate:
        text = self.p.peek()
        if text[:2] in ("0f", "0F"):
            self.p.take()
            return Immediate(int(text[2:], 16), 32)
        if text[:2] in ("0d", "0D"):
            self.p.take()
            return Immediate(int(text[2:], 16), 64)
        if "." in text:
            self.p.take()
            return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
        return Immediate(self.p.integer())

    def operand_name(self, name: str, scope: _Scope) -> Register | Special | Symbol:
        unique = scope.register(name)
        if unique is not None:
            self.declare(name, unique)
            return Register(unique)
        if _SPECIAL.match(name):
            return Special(name)
        if name.startswith("%") and name not in ("%SP", "%SPL"):
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
            if self.p.accept("+"):
                offset += self.p.integer()
            elif self.p.peek() == "-":
                offset += self.p.integer()
            else:
                self.p.expect(",")
                extra.append(self.operand(scope))
        return Address(base, offset, tuple(extra))
