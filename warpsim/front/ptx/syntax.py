"""The parts of a PTX module, as plain data."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from warpsim.machine.core.image import Variable
from warpsim.machine.core.site import Source, where


class Register(msgspec.Struct, frozen=True):
    """A virtual register, by the name that is unique in its entry."""

    name: str


class SpecialName(msgspec.Struct, frozen=True):
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


class SubRegister(msgspec.Struct, frozen=True):
    """%r1.b2, %r1.h0: a part of a register, in scalar video instructions."""

    register: Register
    which: str


class Not(msgspec.Struct, frozen=True):
    """!p as a source."""

    operand: Operand


class Address(msgspec.Struct, frozen=True):
    """[base + offset], or [tensor map, {coordinates}] with its further parts in `extra`."""

    base: Operand
    offset: int = 0
    extra: tuple[Operand, ...] = ()


LISTING = "PTX"

Operand: TypeAlias = (
    Register | SpecialName | Immediate | Symbol | Vector | Pair | Not | SubRegister | Address | None
)
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
    used_bytes: int | None = None
    """Of a load: a bit for each byte that the program uses; None: it may use all of them."""

    def where(self) -> str:
        """`file.cu:12 (PTX line 345)`, or just the PTX line without -lineinfo."""
        return where(LISTING, self.line, self.source)


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


class PtxModule(msgspec.Struct, kw_only=True):
    """A PTX file."""

    version: str = ""
    target: str = ""
    variables: list[Variable] = []
    functions: dict[str, Function] = {}
