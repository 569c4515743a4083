"""PTX text to a Module.

The dialect is that of nvcc 13.0, inline asm included: brace-scoped registers and labels that repeat
(every inlined wait loop brings its own LAB_WAIT), several instructions per line, .loc line tables.
"""

from __future__ import annotations

from warpsim.front.ptx.body import Body
from warpsim.front.ptx.declarations import LINKAGE, SPACES, Declarations
from warpsim.front.ptx.faults import MALFORMED
from warpsim.front.ptx.syntax import Function, PtxModule
from warpsim.front.ptx.tokens import Tokens, tokens


def parse(text: str) -> PtxModule:
    """The module that `text` spells; PtxSyntaxError names the PTX line of what can't be read."""
    parser = Parser(tokens(text))
    try:
        return parser.module()
    except MALFORMED as error:
        raise parser.fault("this is not PTX as nvcc writes it") from error


class Parser(Declarations):
    """A module, item by item."""

    def __init__(self, found: Tokens) -> None:
        super().__init__(found)
        self.result = PtxModule()

    def module(self) -> PtxModule:
        while self.peek():
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

    def declaration(self) -> None:
        extern = False
        while self.peek() in LINKAGE:
            extern |= self.take() == ".extern"
        word = self.peek()
        if word in (".entry", ".func"):
            self.function()
        elif word in SPACES:
            self.result.variables += self.variables(extern)
        else:
            raise self.fault(f"{word!r} is not understood at module level")

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
        Body(self, function).parse()
        self.result.functions[function.name] = function

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
