"""What the builder of an instruction may ask for: its operands as readers of register arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from kernelexp.emulator.machine import registers
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.image import Bank
from kernelexp.emulator.machine.layout import SHARED_RESERVED
from kernelexp.emulator.machine.machine import Op, WarpSet
from kernelexp.emulator.machine.registers import Slot
from kernelexp.emulator.machine.site import Site, UnsupportedInstruction
from kernelexp.emulator.machine.warps import ALL, pack
from kernelexp.emulator.sass.classes import classify
from kernelexp.emulator.sass.cubin import HOPPER
from kernelexp.emulator.sass.faults import refuse
from kernelexp.emulator.sass.syntax import (
    AROUND,
    LISTING,
    UNPACK,
    ZERO,
    Address,
    Constant,
    Immediate,
    Instruction,
    Operand,
    Register,
)
from kernelexp.emulator.sass.word import BYTES

Reader: TypeAlias = Callable[[list[Array]], Array]
Writer: TypeAlias = Callable[[list[Array], Array, Mask], None]
_TABLES = 2
"""The constant bank with tables of branches."""
SIGN = np.uint32(0x8000_0000)
SIGN_64, INFINITY_64 = np.uint64(1 << 63), np.uint64(0x7FF << 52)
_SCALES = {"": 0, "X4": 2, "X8": 3, "X16": 4}
copyto = np.copyto


class Decoder:
    """The entry being decoded, and the instruction at which decoding stands."""

    def __init__(self, code: Sequence[Instruction], sm: int, banks: dict[int, Bank]) -> None:
        self.code = code
        self.sm = sm
        self.banks = banks
        self.slots: list[Slot] = []
        self._index: dict[Slot, int] = {}
        self.sites = [site_of(ins) for ins in code]
        self.shared_unit = 4
        """Bytes of the smallest shared-memory access so far."""
        self.global_unit = 4
        """The same of global memory."""
        self._numbers: dict[int, int] = {}
        self._starts: dict[int, int] | None = None
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

    def number_at(self, operand: Operand) -> int:
        """The number of the instruction at an address that the code names."""
        address = self.constant(operand)
        if address not in self._numbers:
            raise self.refuse(f"goes to {address:#x}, where no instruction of the entry begins")
        return self._numbers[address]

    def length(self) -> int:
        return len(self.code)

    def starts(self) -> dict[int, int]:
        """The numbers of the instructions that code may go on at by a register, by address: behind
        calls, and wherever a literal or a table of branches points."""
        if self._starts is None:
            after = {i.address + BYTES for i in self.code if i.base == "CALL"}
            literals = {o.value for i in self.code for o in i.operands if isinstance(o, Immediate)}
            table = self.banks[_TABLES].data if _TABLES in self.banks else b""
            words = np.frombuffer(table[: len(table) // 4 * 4], "<u4").tolist()
            found = (after | literals | set(words)) & set(self._numbers)
            self._starts = {address: self._numbers[address] for address in sorted(found)}
        return self._starts

    def unguarded(self) -> None:
        """Refuses the instruction if it has a guard."""
        if self.instruction.guard is not None:
            raise self.refuse("has a guard, which is not covered")

    def by_whole_warps(self, op: Op) -> Op:
        """An operation for which all lanes of a warp are needed."""
        self.unguarded()
        site = self.site

        def whole(R: list[Array], m: Mask, warps: WarpSet) -> None:
            for row, lanes in enumerate([] if m is True else pack(m)):
                place = int(warps.warps[row])
                if lanes | warps.machine.exited[place] != ALL:
                    sentence = f"{site.opcode} executed by lanes {lanes:#010x} only."
                    warps.machine.report("divergent-aligned", sentence, site, place)
            op(R, True, warps)

        return whole

    # Operands

    def split(self) -> tuple[Operand, list[Operand], list[Operand]]:
        """The first operand, the predicates that follow it, and the rest."""
        if not self.operands:
            raise self.refuse("has no operands where some are expected")
        first, *rest = self.operands
        count = 0
        while count < len(rest) and _is_predicate(rest[count]):
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
        return self.slot(registers.Register(f"@{name}", bits, bits))

    def _word(self, register: Register, part: int = 0) -> int:
        """The slot of a register, or of the one `part` places after it, as a source."""
        if register.index == ZERO:
            return self.slot(registers.Literal(0, 32))
        if register.file not in ("R", "UR"):
            raise self.refuse(f"has {register.file}{register.index} where a value is expected")
        name = f"{register.file}{register.index + part}"
        return self.slot(registers.Register(name, 32, 32))

    def _bit(self, register: Register) -> int:
        if register.index == ZERO:
            return self.slot(registers.Literal(1, 1))
        return self.slot(registers.Register(f"{register.file}{register.index}", 1, 1))

    def bit(self, index: int) -> int:
        """The slot of a predicate of lanes."""
        return self._bit(Register(file="P", index=index))

    # Sources

    def words(self, operand: Operand, count: int) -> list[int]:
        """The slots of `count` consecutive 32-bit sources, without their signs."""
        if isinstance(operand, Register) and operand.file in ("R", "UR"):
            found = [self._word(operand, part) for part in range(count)]
        elif isinstance(operand, Constant) and operand.register is None:
            found = [self._constant(operand, part) for part in range(count)]
        elif isinstance(operand, Immediate) and count == 1:
            found = [self.slot(registers.Literal(operand.value, 32))]
        else:
            raise self.refuse(f"has an operand that is not covered: {operand}")
        return found

    def _constant(self, operand: Constant, part: int) -> int:
        offset, bank = operand.offset + 4 * part, self.banks.get(operand.bank)
        if offset % 4 or bank is None or not bank.has(offset, 4):
            raise self.refuse(
                f"reads c[{operand.bank:#x}][{offset:#x}], which the emulator does not provide"
            )
        return self.slot(registers.Constant(operand.bank, offset))

    def unsigned(self, operand: Operand) -> Operand:
        """The operand, which has neither a sign nor a part."""
        if _signed(operand) or getattr(operand, "part", ""):
            raise self.refuse("has an operand that is not covered")
        return operand

    def matrix(self, operand: Operand, layout: str) -> Operand:
        """The operand, a matrix: of integers with its layout."""
        if isinstance(operand, Register) and operand.part == layout:
            operand = msgspec.structs.replace(operand, part="")
        return self.unsigned(operand)

    def place_in_bank(self, operand: Constant) -> Reader:
        """The offset of a constant that a register may index."""
        if operand.bank not in self.banks or _signed(operand):
            raise self.refuse(
                f"reads constant bank {operand.bank:#x}, which the emulator does not provide"
            )
        offset = self.slot(registers.Literal(operand.offset & 0xFFFF_FFFF, 32))
        if operand.register is None:
            return lambda R: R[offset]
        slot = self._word(operand.register)
        return lambda R: R[slot] + R[offset]

    def bits(self, operand: Operand) -> Reader:
        """A source as it is; refused with a sign."""
        reader = self._plain(operand)
        if _signed(operand):
            raise self.refuse("has a sign where none is modelled")
        return reader

    def _plain(self, operand: Operand) -> Reader:
        if isinstance(operand, Register) and operand.part:
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
        part = getattr(operand, "part", "")
        if part not in ("", "H0", "H1", "H0_H0", "H1_H1"):
            raise self.refuse(f"has a part of a register that is not covered: .{part}")
        (slot,) = self.words(operand, 1)
        shift = np.uint32(16 if part.startswith("H1") else 0)
        keep, flip = self._half_signs(operand)
        keep, flip = keep.astype(np.uint16), flip.astype(np.uint16)
        return lambda R: (R[slot] >> shift).astype(np.uint16) & keep ^ flip

    def pair_of_halves(self, operand: Operand) -> Reader:
        """A source as two halves, the same twice with `.H0_H0` or `.H1_H1`."""
        part = getattr(operand, "part", "")
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
        if _signed(operand) or getattr(operand, "part", ""):
            raise self.refuse("has a sign on a source of 64 bits")
        low, high = self.words(operand, 2)
        return lambda R: R[high].astype(np.uint64) << np.uint64(32) | R[low]

    def double(self, operand: Operand) -> Reader:
        """A source as f64; of a literal the word has the upper half. Signs don't change a NaN."""
        if isinstance(operand, Immediate):
            slot = self.slot(registers.Literal(operand.value << 32, 64))
            return lambda R: R[slot]
        if getattr(operand, "inverted", False) or getattr(operand, "part", ""):
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
        if not isinstance(operand, Register):
            raise self.refuse(f"has {operand} where a predicate is expected")
        negated = operand.negated
        if operand.file == "R" and operand.part == "SIGN":
            word = self._word(operand)
            return lambda R: (R[word] >= SIGN) ^ negated
        if operand.file not in ("P", "UP") or operand.part:
            raise self.refuse(f"has {operand.file}{operand.index} where a predicate is expected")
        slot = self._bit(operand)
        return (lambda R: ~R[slot]) if negated else (lambda R: R[slot])

    def predicate_slot(self, operand: Operand) -> tuple[int, bool]:
        """(slot, negated) of a predicate that decides."""
        if not _is_predicate(operand):
            raise self.refuse(f"has {operand} where a predicate is expected")
        assert isinstance(operand, Register)
        return self._bit(operand), operand.negated

    def truth(self, operand: Operand) -> bool | None:
        """Whether a predicate is always true or always false; None if it depends."""
        if isinstance(operand, Register) and operand.index == ZERO:
            return not operand.negated
        return None

    def constant(self, operand: Operand) -> int:
        """The value of a literal."""
        if not isinstance(operand, Immediate):
            raise self.refuse("has a register where a number is expected")
        return operand.value

    def guard(self) -> tuple[int, bool]:
        """(slot, negated) of the instruction's guard."""
        assert self.instruction.guard is not None
        slot = self._bit(self.instruction.guard)
        return slot, self.instruction.guard.negated

    # Destinations

    def to(self, operand: Operand) -> int:
        """Where a result of 32 bits goes."""
        return self.to_words(operand, 1)[0]

    def to_words(self, operand: Operand, count: int) -> list[int]:
        if not isinstance(operand, Register) or operand.file not in ("R", "UR"):
            raise self.refuse(f"has {operand} where a result is expected")
        if operand.index == ZERO:
            return [self.slot(registers.Sink(32))] * count
        return [self._word(operand, part) for part in range(count)]

    def to_pair(self, operand: Operand) -> Writer:
        """Where a result of 64 bits goes."""
        low, high = self.to_words(operand, 2)

        def write(R: list[Array], value: Array, m: Mask) -> None:
            copyto(R[low], value.astype(np.uint32), where=m)
            copyto(R[high], (value >> np.uint64(32)).astype(np.uint32), where=m)

        return write

    def to_predicate(self, operand: Operand) -> int:
        if not isinstance(operand, Register) or operand.file not in ("P", "UP"):
            raise self.refuse(f"has {operand} where a predicate is expected")
        if operand.index == ZERO:
            return self.slot(registers.Sink(1))
        return self._bit(operand)

    # Addresses

    def address(self, operand: Operand, *, wide: bool) -> Reader:
        """A memory operand as addresses: 64 bits (wide), or 32 bits of shared or local memory."""
        if not isinstance(operand, Address):
            raise self.refuse("has no memory operand where one is expected")
        if wide:
            return self._wide(operand)
        readers = []
        if operand.base is not None:
            readers.append(self._scaled(operand.base))
        if operand.uniform is not None:
            slot = self._word(operand.uniform)
            readers.append(lambda R: R[slot])
        offset = self.slot(registers.Literal(operand.offset & 0xFFFF_FFFF, 32))
        return _sum(readers, offset)

    def _scaled(self, base: Register) -> Reader:
        if base.part not in _SCALES:
            raise self.refuse(f"has an address that is not covered: .{base.part}")
        slot, shift = self._word(base), np.uint32(_SCALES[base.part])
        return (lambda R: R[slot] << shift) if shift else (lambda R: R[slot])

    def _wide(self, operand: Address) -> Reader:
        readers = []
        for register in (operand.base, operand.uniform):
            if register is None:
                continue
            low = self._word(register)
            if register.part == "U32":
                readers.append(_extended(low))
            elif register.part in ("", "64"):
                high = self._word(register, 1)
                readers.append(_joined(low, high))
            else:
                raise self.refuse(f"has an address that is not covered: .{register.part}")
        offset = self.slot(registers.Literal(operand.offset & 0xFFFF_FFFF_FFFF_FFFF, 64))
        return _sum(readers, offset)

    def shared_address(self, operand: Operand) -> Reader:
        """An address in shared memory; before Hopper, those of programs begin at 0."""
        where = self.address(operand, wide=False)
        if self.sm >= HOPPER:
            return where
        first = np.uint32(SHARED_RESERVED)
        return lambda R: where(R) + first


def _is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file in ("P", "UP")


def _signed(operand: Operand) -> bool:
    signs = ("negated", "inverted", "absolute")
    return any(getattr(operand, sign, False) for sign in signs)


def _extended(low: int) -> Reader:
    return lambda R: R[low].astype(np.uint64)


def _joined(low: int, high: int) -> Reader:
    return lambda R: R[high].astype(np.uint64) << np.uint64(32) | R[low]


def _sum(readers: Sequence[Reader], offset: int) -> Reader:
    if not readers:
        return lambda R: R[offset]
    if len(readers) == 1:
        (first,) = readers
        return lambda R: first(R) + R[offset]
    first, second = readers
    return lambda R: first(R) + second(R) + R[offset]


def site_of(ins: Instruction) -> Site:
    return Site(
        number=ins.number,
        opcode=ins.opcode,
        kind="" if ins.opcode in (AROUND, UNPACK) else classify(ins.base),
        listing=LISTING,
        line=ins.line,
        source=ins.source,
        text=ins.text,
    )


def is_uniform(ins: Instruction) -> bool:
    """Whether it is executed once for the warp, whatever lanes are active."""
    return ins.base.startswith("U") or ins.base == "LDCU"


def uniformly(R: list[Array], slot: int, values: Array, m: Mask, warps: WarpSet) -> None:
    """Gives a register of the warp the value of its first active lane."""
    if m is True:
        R[slot][...] = values[:, :1]
        return
    first = m.argmax(axis=1)[:, None]
    copyto(R[slot], np.take_along_axis(values, first, axis=1), where=m.any(axis=1)[:, None])


def applied(target: int, function: Callable[..., Array], sources: Sequence[Reader]) -> Op:
    """target = function(*sources)"""
    if len(sources) == 1:
        (a,) = sources
        return lambda R, m, warps: copyto(R[target], function(a(R)), where=m)
    if len(sources) == 2:
        a, b = sources
        return lambda R, m, warps: copyto(R[target], function(a(R), b(R)), where=m)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[target], function(*[source(R) for source in sources]), where=m)

    return op
