"""The parts of a SASS instruction, as plain data."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from warpsim.machine.core.site import Source, where

LISTING = "SASS"

File: TypeAlias = Literal["R", "UR", "P", "UP", "B", "UB", "SB"]
"""Registers of lanes, of the warp, predicates of both, convergence barriers, scoreboards."""
ZERO = -1
"""The index of RZ, URZ, PT and UPT."""
AROUND, UNPACK, STORED = "@AROUND", "@UNPACK", "@STORED"
"""Opcodes of the emulator's own: the branch around a guarded instruction at which lanes wait, what
takes the operand of a barrier apart, and the wait of a control word for bulk stores. They are not
counted."""
OWN = frozenset({AROUND, UNPACK, STORED})


class RegisterOperand(msgspec.Struct, frozen=True, kw_only=True):
    """A register as an operand: -|R5.H0_H0|."""

    file: File
    index: int
    negated: bool = False
    """With a minus sign; of a predicate: with an exclamation mark."""
    inverted: bool = False
    """With a tilde."""
    absolute: bool = False
    part: str = ""
    """What follows after a dot: "64", "X4", "H0_H0", "SIGN"."""


class LiteralOperand(msgspec.Struct, frozen=True):
    """A literal of 32 bits. Those of floating-point literals are the word's: the text rounds."""

    value: int
    floating: bool = False


class ConstantOperand(msgspec.Struct, frozen=True, kw_only=True):
    """c[bank][register + offset]"""

    bank: int
    offset: int
    register: RegisterOperand | None = None
    negated: bool = False
    inverted: bool = False
    absolute: bool = False


class MemoryOperand(msgspec.Struct, frozen=True, kw_only=True):
    """[base + uniform + offset], and the descriptor that may stand before it."""

    base: RegisterOperand | None = None
    uniform: RegisterOperand | None = None
    offset: int = 0
    descriptor: RegisterOperand | None = None


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """What registers of the warp describe: gdesc[UR4].tnspB, tmem[UR9+0x20], idesc[UR5]."""

    kind: str
    register: RegisterOperand
    offset: int = 0
    parts: tuple[str, ...] = ()


class SpecialOperand(msgspec.Struct, frozen=True):
    """SR_TID.X, SRZ."""

    name: str


class Other(msgspec.Struct, frozen=True):
    """An operand of no other kind: gsb0, PR, Rpc.LO, {5,4,3,2,1,0}."""

    text: str


Operand: TypeAlias = (
    RegisterOperand
    | LiteralOperand
    | ConstantOperand
    | MemoryOperand
    | Described
    | SpecialOperand
    | Other
)


class MachineInstruction(msgspec.Struct, frozen=True, kw_only=True):
    """One SASS instruction."""

    number: int
    """Its index in the entry."""
    address: int
    """Bytes from the entry's first instruction."""
    opcode: str
    """With its modifiers: LDG.E.128."""
    operands: tuple[Operand, ...]
    guard: RegisterOperand | None = None
    line: int
    """Line of the listing, from 1."""
    source: Source | None = None
    text: str
    word: int
    """Its 128 bits."""

    @property
    def base(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])

    def where(self) -> str:
        """`file.cu:12 (SASS line 345)`, or just the SASS line."""
        return where(LISTING, self.line, self.source)
