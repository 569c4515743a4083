"""Declarations of variables and parameters."""

from __future__ import annotations

import re

from warpsim.front.ptx.expressions import expression
from warpsim.front.ptx.stream import Stream
from warpsim.front.ptx.tokens import Tokens
from warpsim.machine.core.image import Pointed, Variable
from warpsim.machine.core.site import Source, UnsupportedInstruction

LINKAGE = {".extern", ".visible", ".weak", ".common"}
SPACES = {".global", ".const", ".shared", ".local", ".param"}
_UNSUPPORTED = {".texref", ".samplerref", ".surfref"}
_TYPE = re.compile(r"\.(?:pred|[busf](?:8|16|32|64|128)|f16x2|bf16|bf16x2|b8x4)$")


def size_of(type_name: str) -> int:
    """Bytes of one element: size_of("b32") is 4."""
    if type_name == "pred":
        return 1
    return max(1, int(re.sub(r"^\D+(\d+).*$", r"\1", type_name)) // 8)


class Declarations(Stream):
    """What declares a name in a state space, and the table of source files."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens)
        self.files: dict[int, str] = {}
        self.inlined: dict[tuple[int, int, int], Source] = {}
        """Where the code at a line, seen so far, was inlined."""
        for index, text in enumerate(self.texts):  # nvcc writes the file table at the end.
            if text == ".file" and self.texts[index + 1].isdecimal():
                self.files[int(self.texts[index + 1])] = self.texts[index + 2].strip('"')

    def file(self) -> None:
        self.expect(".file")
        number = self.integer()
        self.files[number] = self.take().strip('"')
        while self.accept(","):
            self.integer()

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
            elif word in _UNSUPPORTED:
                raise UnsupportedInstruction(
                    f"PTX line {self.line()}: {word}: textures and surfaces are not covered by the "
                    "emulator."
                )
            elif word != ".ptr" and word not in SPACES:
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
            size *= 0 if self.peek() == "]" else expression(self)
            self.expect("]")
        pointed: list[Pointed] = []
        data = self.initialiser(element, 0, pointed) if self.accept("=") else b""
        if space != "shared" or not extern:
            size = max(size, len(data))
        return Variable(
            name=name,
            space=space,
            type=kind,
            align=align or element,
            size=size,
            data=data,
            addresses=tuple(pointed),
        )

    def initialiser(self, element: int, at: int, pointed: list[Pointed]) -> bytes:
        """The bytes from `at` on; addresses among them are zeros, and noted in `pointed`."""
        if not self.accept("{"):
            return self.literal(element, at, pointed)
        data = b""
        while not self.accept("}"):
            data += self.initialiser(element, at + len(data), pointed)
            self.accept(",")
        return data

    def literal(self, element: int, at: int, pointed: list[Pointed]) -> bytes:
        text = self.peek()
        if text[:2] in ("0f", "0F", "0d", "0D"):
            self.take()
            return int(text[2:], 16).to_bytes(element, "little")
        if text[:1].isdigit() or text == "-":
            return (self.integer() % (1 << (8 * element))).to_bytes(element, "little")
        if element != 8:
            raise self.fault(f"initial value {text!r}: parts of addresses are not modelled")
        generic = self.accept("generic") and self.accept("(")
        name = self.take()
        addend = self.integer() if self.accept("+") else 0
        if generic:
            self.expect(")")
        pointed.append(Pointed(at, name, addend))
        return bytes(8)

    def parameter_list(self) -> tuple[Variable, ...]:
        self.expect("(")
        parameters = []
        while not self.accept(")"):
            if self.peek() == ".reg":
                self.take()
                parameters.append(self.declarator("param", self.take()[1:], 0, 1, False))
            else:
                parameters.append(self.parameter())
            self.accept(",")
        return tuple(parameters)

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
            elif word not in SPACES:
                raise self.fault(f"{word!r} is not understood in a parameter")
        return self.declarator(space, kind, align, 1, False)
