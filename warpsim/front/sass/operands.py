"""The operands of SASS instructions, as readers of register arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import numpy as np

from warpsim.front.sass.classes import classify
from warpsim.front.sass.faults import refuse
from warpsim.front.sass.syntax import (
    AROUND,
    LISTING,
    OWN,
    ZERO,
    ConstantOperand,
    LiteralOperand,
    MachineInstruction,
    MemoryOperand,
    Operand,
    RegisterOperand,
)
from warpsim.machine.core import registers
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.image import Bank
from warpsim.machine.core.registers import Slot
from warpsim.machine.core.site import Site, UnsupportedInstruction
from warpsim.tables.opcodes import pipes

Reader: TypeAlias = Callable[[list[Array]], Array]
SIGN = np.uint32(0x8000_0000)
_PLACES = {"B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16}
"""Where a part of a register begins, in bits."""
SIGN_64, INFINITY_64 = np.uint64(1 << 63), np.uint64(0x7FF << 52)


@dataclass(slots=True)
class RegisterUses:
    """Names of the registers that an instruction uses, in the order of its operands."""

    reads: dict[str, None] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)


class OperandReader:
    """The entry being decoded, and the operands of the instruction at which decoding stands."""

    def __init__(self, code: Sequence[MachineInstruction], sm: int, banks: dict[int, Bank]) -> None:
        self.code = code
        self.sm = sm
        self.banks = banks
        self.slots: list[Slot] = []
        self._index: dict[Slot, int] = {}
        self.uses: defaultdict[int, RegisterUses] = defaultdict(RegisterUses)
        """By instruction, of those that have been decoded."""
        self.sites = [
            site_of(ins, before, pipes(ins.opcode, ins.text, sm))
            for before, ins in zip((None, *code), code, strict=False)
        ]
        self.shared_unit = 4
        """Bytes of the smallest shared-memory access so far."""
        self.global_unit = 4
        """The same of global memory."""
        self.lanes: dict[int, Callable[[list[Array]], Array]] = {}
        """Of shuffles, by instruction: see SlotUses."""
        self.products: dict[int, tuple[tuple[int, ...], ...]] = {}
        """Of the products of a warp, by instruction: slots of A, B and C."""
        self._numbers: dict[int, int] = {}
        self._starts: dict[int, int] | None = None
        self._swapped: set[MemoryOperand] | None = None
        for ins in code:
            self._numbers.setdefault(ins.address, ins.number)
        self.at(0)

    def at(self, number: int) -> None:
        """Goes to an instruction."""
        self.instruction = self.code[number]
        self.site = self.sites[number]
        self.operands = self.instruction.operands
        self.modifiers = frozenset(self.instruction.modifiers)

    def refuse(self, why: str = "is not covered by the emulator") -> UnsupportedInstruction:
        return refuse(self.instruction, why)

    def note_unit(self, space: str, size: int) -> None:
        """Notes how finely the instruction's accesses divide a memory."""
        if space in ("shared", "generic"):
            self.shared_unit = min(self.shared_unit, size)
        if space in ("global", "generic"):
            self.global_unit = min(self.global_unit, size)

    # Operands

    def split(self) -> tuple[Operand, list[Operand], list[Operand]]:
        """The first operand, the predicates that follow it, and the rest."""
        if not self.operands:
            raise self.refuse("has no operands where some are expected")
        first, *rest = self.operands
        count = 0
        while count < len(rest) and is_predicate(rest[count]):
            count += 1
        return first, rest[:count], rest[count:]

    def take(self, operands: Sequence[Operand], count: int) -> Sequence[Operand]:
        """The operands, of which there must be `count`."""
        if len(operands) != count:
            raise self.refuse("has another number of operands than are covered")
        return operands

    # Slots

    def slot(self, slot: Slot) -> int:
        if slot not in self._index:
            self._index[slot] = len(self.slots)
            self.slots.append(slot)
        return self._index[slot]

    def scratch(self, name: str, bits: int) -> int:
        """A register of the emulator's own."""
        return self.slot(registers.RegisterPart(f"@{name}", bits, bits))

    def word_of(self, register: RegisterOperand, part: int = 0) -> int:
        """The slot of a register, or of the one `part` places after it, as a source."""
        if register.index == ZERO:
            return self.slot(registers.Literal(0, 32))
        if register.file not in ("R", "UR"):
            raise self.refuse(f"has {register.file}{register.index} where a value is expected")
        name = f"{register.file}{register.index + part}"
        self.uses[self.instruction.number].reads[name] = None
        return self.slot(registers.RegisterPart(name, 32, 32))

    def bit_of(self, register: RegisterOperand) -> int:
        if register.index == ZERO:
            return self.slot(registers.Literal(1, 1))
        name = f"{register.file}{register.index}"
        self.uses[self.instruction.number].reads[name] = None
        return self.slot(registers.RegisterPart(name, 1, 1))

    # Sources

    def words(self, operand: Operand, count: int) -> list[int]:
        """The slots of `count` consecutive 32-bit sources, without their signs."""
        if isinstance(operand, RegisterOperand) and operand.file in ("R", "UR"):
            slots = [self.word_of(operand, part) for part in range(count)]
        elif isinstance(operand, ConstantOperand) and operand.register is None:
            slots = [self._constant(operand, part) for part in range(count)]
        elif isinstance(operand, LiteralOperand) and count == 1:
            slots = [self.slot(registers.Literal(operand.value, 32))]
        else:
            raise self.refuse(f"has an operand that is not covered: {operand}")
        return slots

    def _constant(self, operand: ConstantOperand, part: int) -> int:
        offset, bank = operand.offset + 4 * part, self.banks.get(operand.bank)
        if offset % 4 or bank is None or not bank.has(offset, 4):
            raise self.refuse(
                f"reads c[{operand.bank:#x}][{offset:#x}], which the emulator does not provide"
            )
        return self.slot(registers.ConstantWord(operand.bank, offset))

    def unsigned(self, operand: Operand) -> Operand:
        """The operand, which has neither a sign nor a part."""
        if _signed(operand) or part_of(operand):
            raise self.refuse("has an operand that is not covered")
        return operand

    def matrix(self, operand: Operand, layout: str) -> Operand:
        """The operand, a matrix: of integers with its layout."""
        if isinstance(operand, RegisterOperand) and operand.part == layout:
            operand = msgspec.structs.replace(operand, part="")
        return self.unsigned(operand)

    def place_in_bank(self, operand: ConstantOperand) -> Reader:
        """The offset of a constant that a register may index."""
        known = operand.bank in self.banks
        if known and operand.bank == 0 and not self.banks[0].has(operand.offset & ~3, 4):
            known = False
        if not known or _signed(operand):
            raise self.refuse(
                f"reads constant bank {operand.bank:#x}, which the emulator does not provide"
            )
        offset = self.slot(registers.Literal(operand.offset & 0xFFFF_FFFF, 32))
        if operand.register is None:
            return lambda R: R[offset]
        slot = self.word_of(operand.register)
        return lambda R: R[slot] + R[offset]

    def bits(self, operand: Operand) -> Reader:
        """A source as it is; refused with a sign."""
        reader = self._plain(operand)
        if _signed(operand):
            raise self.refuse("has a sign where none is modelled")
        return reader

    def narrow(self, operand: Operand) -> Reader:
        """A source whose lowest bits are read: those of a byte (`.B1`) or half (`.H1`) of it."""
        shift = _PLACES.get(part_of(operand))
        if shift is None or not isinstance(operand, RegisterOperand):
            return self.bits(operand)
        (slot,) = self.words(operand, 1)
        if _signed(operand):
            raise self.refuse("has a sign where none is modelled")
        return lambda R: R[slot] >> np.uint32(shift)

    def _plain(self, operand: Operand) -> Reader:
        if isinstance(operand, RegisterOperand) and operand.part:
            raise self.refuse(f"has a part of a register that is not covered: .{operand.part}")
        (slot,) = self.words(operand, 1)
        return lambda R: R[slot]

    def integer(self, operand: Operand) -> Reader:
        """A source as 32 bits: minus is the two's complement, a tilde the bits' complement."""
        reader = self._plain(operand)
        if getattr(operand, "absolute", False):
            raise self.refuse("takes the magnitude of an integer")
        if getattr(operand, "inverted", False):
            return lambda R: ~reader(R)
        if getattr(operand, "negated", False):
            return lambda R: 0 - reader(R)
        return reader

    def real(self, operand: Operand) -> Reader:
        """A source as f32."""
        reader = self._plain(operand)
        if getattr(operand, "inverted", False):
            raise self.refuse("inverts a floating-point number")
        absolute, negated = getattr(operand, "absolute", False), getattr(operand, "negated", False)
        if absolute and negated:
            return lambda R: reader(R) | SIGN
        if absolute:
            return lambda R: reader(R) & ~SIGN
        if negated:
            return lambda R: reader(R) ^ SIGN
        return reader

    def addend(self, operand: Operand) -> Reader:
        """A source of a sum as uint64: minus x is ~x + 1, so that the sum carries as hardware's."""
        reader = self._plain(operand)
        if getattr(operand, "absolute", False):
            raise self.refuse("takes the magnitude of an integer")
        if getattr(operand, "inverted", False):
            return lambda R: (~reader(R)).astype(np.uint64)
        if getattr(operand, "negated", False):
            return lambda R: (~reader(R)).astype(np.uint64) + np.uint64(1)
        return lambda R: reader(R).astype(np.uint64)

    def magnitude(self, operand: Operand) -> Reader:
        """A source as f32 whose bars the operation itself accounts for."""
        if not getattr(operand, "absolute", False) or getattr(operand, "negated", False):
            raise self.refuse("has a source without bars")
        return self._plain(operand)

    def half(self, operand: Operand) -> Reader:
        """One half of a source, uint16: the upper one with `.H1` or `.H1_H1`, else the lower."""
        part = part_of(operand)
        if part not in ("", "H0", "H1", "H0_H0", "H1_H1"):
            raise self.refuse(f"has a part of a register that is not covered: .{part}")
        (slot,) = self.words(operand, 1)
        shift = np.uint32(16 if part.startswith("H1") else 0)
        keep, flip = self._half_signs(operand)
        keep, flip = keep.astype(np.uint16), flip.astype(np.uint16)
        return lambda R: (R[slot] >> shift).astype(np.uint16) & keep ^ flip

    def pair_of_halves(self, operand: Operand) -> Reader:
        """A source as two halves, the same twice with `.H0_H0` or `.H1_H1`."""
        part = part_of(operand)
        if part not in ("", "H1_H0", "H0_H0", "H1_H1"):
            raise self.refuse(f"has a part of a register that is not covered: .{part}")
        (slot,) = self.words(operand, 1)
        keep, flip = self._half_signs(operand)
        if part not in ("H0_H0", "H1_H1"):
            return lambda R: R[slot] & keep ^ flip
        shift, both = np.uint32(16 * (part == "H1_H1")), np.uint32(0x1_0001)
        return lambda R: (R[slot] >> shift & np.uint32(0xFFFF)) * both & keep ^ flip

    def _half_signs(self, operand: Operand) -> tuple[np.uint32, np.uint32]:
        """What is kept of two halves, then flipped."""
        if getattr(operand, "inverted", False):
            raise self.refuse("inverts a floating-point number")
        absolute, negated = getattr(operand, "absolute", False), getattr(operand, "negated", False)
        keep = np.uint32(0x7FFF_7FFF if absolute else 0xFFFF_FFFF)
        return keep, np.uint32(0x8000_8000 if negated else 0)

    def pair(self, operand: Operand) -> Reader:
        """A source of 64 bits: two registers, or two words of a constant bank."""
        if _signed(operand) or part_of(operand):
            raise self.refuse("has a sign on a source of 64 bits")
        low, high = self.words(operand, 2)
        return lambda R: R[high].astype(np.uint64) << np.uint64(32) | R[low]

    def double(self, operand: Operand) -> Reader:
        """A source as f64; of a literal the word has the upper half. Signs don't change a NaN."""
        if isinstance(operand, LiteralOperand):
            slot = self.slot(registers.Literal(operand.value << 32, 64))
            return lambda R: R[slot]
        if getattr(operand, "inverted", False) or part_of(operand):
            raise self.refuse("has an operand that is not covered")
        low, high = self.words(operand, 2)
        absolute, negated = getattr(operand, "absolute", False), getattr(operand, "negated", False)
        if not (absolute or negated):
            return lambda R: R[high].astype(np.uint64) << np.uint64(32) | R[low]
        keep = ~SIGN_64 if absolute else ~np.uint64(0)
        flip = SIGN_64 if negated else np.uint64(0)

        def read(R: list[Array]) -> Array:
            plain = R[high].astype(np.uint64) << np.uint64(32) | R[low]
            return np.where(plain & ~SIGN_64 > INFINITY_64, plain, plain & keep ^ flip)

        return read

    def predicate(self, operand: Operand) -> Reader:
        """A source of one bit; R0.SIGN is the sign bit of a register."""
        if not isinstance(operand, RegisterOperand):
            raise self.refuse(f"has {operand} where a predicate is expected")
        negated = operand.negated
        if operand.file == "R" and operand.part == "SIGN":
            word = self.word_of(operand)
            return lambda R: (R[word] >= SIGN) ^ negated
        if operand.file not in ("P", "UP") or operand.part:
            raise self.refuse(f"has {operand.file}{operand.index} where a predicate is expected")
        slot = self.bit_of(operand)
        return (lambda R: ~R[slot]) if negated else (lambda R: R[slot])

    def predicate_slot(self, operand: Operand) -> tuple[int, bool]:
        """(slot, negated) of a predicate that decides."""
        if not is_predicate(operand):
            raise self.refuse(f"has {operand} where a predicate is expected")
        assert isinstance(operand, RegisterOperand)
        return self.bit_of(operand), operand.negated

    def truth(self, operand: Operand) -> bool | None:
        """Whether a predicate is always true or always false; None if it depends."""
        if isinstance(operand, RegisterOperand) and operand.index == ZERO:
            return not operand.negated
        return None

    def constant(self, operand: Operand) -> int:
        """The value of a literal."""
        if not isinstance(operand, LiteralOperand):
            raise self.refuse("has a register where a number is expected")
        return operand.value

    def guard(self) -> tuple[int, bool]:
        """(slot, negated) of the instruction's guard."""
        assert self.instruction.guard is not None
        slot = self.bit_of(self.instruction.guard)
        return slot, self.instruction.guard.negated


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand, RegisterOperand) and operand.file in ("P", "UP")


def part_of(operand: Operand) -> str:
    """What follows a register after a dot."""
    return operand.part if isinstance(operand, RegisterOperand) else ""


def is_zero(operand: Operand) -> bool:
    """RZ, or a predicate that is always true or where no result is wanted: PT."""
    return isinstance(operand, RegisterOperand) and operand.index == ZERO


def is_plain(operand: Operand) -> bool:
    """Whether a word is taken as it is."""
    return not (_signed(operand) or part_of(operand))


def _signed(operand: Operand) -> bool:
    signs = ("negated", "inverted", "absolute")
    return any(getattr(operand, sign, False) for sign in signs)


def site_of(
    ins: MachineInstruction, before: MachineInstruction | None, through: tuple[str, ...]
) -> Site:
    goes_around = before is not None and before.opcode == AROUND
    return Site(
        number=ins.number,
        opcode=ins.opcode,
        kind="" if ins.opcode in OWN else classify(ins.opcode),
        listing=LISTING,
        line=ins.line,
        source=ins.source,
        text=ins.text,
        entered=before.number if before is not None and goes_around else None,
        pipes=through,
    )
