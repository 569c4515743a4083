"""The parts of a PTX module, as plain data."""

from __future__ import annotations

import os
from typing import TypeAlias

import msgspec


class Source(msgspec.Struct, frozen=True):
    """A line of CUDA source, from .loc; `caller` is where its function was inlined."""

    file: str
    line: int
    caller: Source | None = None

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"

    def frames(self) -> list[Source]:
        """This line, the line that its function was inlined at, and so on outwards."""
        return [self] if self.caller is None else [self, *self.caller.frames()]

    def own(self) -> Source:
        """The innermost line in the folder of the kernel itself: where a wrapper was used."""
        frames = self.frames()
        folder = os.path.dirname(frames[-1].file)
        return next(f for f in frames if os.path.dirname(f.file) == folder)


class Register(msgspec.Struct, frozen=True):
    """A virtual register, by the name that is unique in its entry."""

    name: str


class Special(msgspec.Struct, frozen=True):
    """A special register such as %tid.x."""

    name: str


class Immediate(msgspec.Struct, frozen=True):
    """A literal: an int, or the bits of a floating-point literal with their width."""

    value: int
    float_bits: int = 0
    """32 or 64 for 0f... and 0d... literals, 0 for integers."""


class Symbol(msgspec.Struct, frozen=True):
    """The name of a variable, a parameter, a function or (in a branch) a label."""

    name: str
    offset: int = 0


class Vector(msgspec.Struct, frozen=True):
    """{a, b, c, d}"""

    items: tuple[Operand, ...]


class Pair(msgspec.Struct, frozen=True):
    """d|p, the two results of shfl, elect, setp."""

    first: Operand
    second: Operand


class Not(msgspec.Struct, frozen=True):
    """!p as a source."""

    operand: Operand


class Address(msgspec.Struct, frozen=True):
    """[base + offset], or [tensor map, {coordinates}] with its further parts in `extra`."""

    base: Operand
    offset: int = 0
    extra: tuple[Operand, ...] = ()


Operand: TypeAlias = Register | Special | Immediate | Symbol | Vector | Pair | Not | Address | None
"""None is the sink `_`."""


class Instruction(msgspec.Struct, frozen=True, kw_only=True):
    """One PTX instruction."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | None = None
    guard_negated: bool = False
    line: int
    """Line of the PTX text, from 1."""
    source: Source | None = None
    text: str

    def where(self) -> str:
        """`file.cu:12 (PTX line 345)`, or just the PTX line without -lineinfo."""
        if self.source is None:
            return f"PTX line {self.line}"
        own = self.source.own()
        inner = "" if own is self.source else f"{self.source}, "
        return f"{own} ({inner}PTX line {self.line})"


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A .global, .const, .shared, .local or .param variable."""

    name: str
    space: str
    type: str
    align: int
    size: int
    """Bytes; 0 for a dynamic .extern .shared array."""
    data: bytes = b""
    """Initial value; shorter than `size` where the rest is zero."""


class Function(msgspec.Struct, kw_only=True):
    """An .entry or a .func with its body, flat: labels are indices into `instructions`."""

    name: str
    entry: bool
    parameters: tuple[Variable, ...] = ()
    results: tuple[Variable, ...] = ()
    variables: list[Variable] = []
    registers: dict[str, str] = {}
    """Type of each register: "b32", "u64", "pred", ..."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    tables: dict[str, tuple[str, ...]] = {}
    """.branchtargets lists, by their label."""
    directives: dict[str, tuple[int, ...]] = {}
    """.maxntid, .reqntid, .reqnctapercluster, ... as far as they hold numbers."""


class Module(msgspec.Struct, kw_only=True):
    """A PTX file."""

    version: str = ""
    target: str = ""
    variables: list[Variable] = []
    functions: dict[str, Function] = {}
